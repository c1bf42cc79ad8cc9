#include "bench/made_up_model.h"

#include <string>
#include <vector>

#include "tests/support/micro_trace.h"

namespace stowage::bench {
namespace {

constexpr Bytes kActivation = 1 << 20;  // batch * sequence * width * 4
constexpr Nanoseconds kNsPerMiB = 150'000;

class Model {
 public:
  Trace run(int layers, std::int64_t link_bytes_per_second) {
    m_.link().d2h = testing::flat_link(link_bytes_per_second, 5'000);
    m_.link().h2d = testing::flat_link(link_bytes_per_second, 5'000);
    m_.link().duplex = 900'000;
    for (int i = 0; i < 12 * layers + 2; ++i) m_.existing(kActivation, StorageClass::parameter);
    StorageId x = make("aten::embedding", "embed", 1);
    for (int i = 0; i < layers; ++i) x = block("layers." + std::to_string(i), x);
    m_.begin_layer("head");
    const StorageId logits = op("aten::mm", 4, {x});
    m_.end_layer("head");
    m_.let_go(x);
    m_.begin_layer("loss");
    const StorageId soft = op("aten::_log_softmax", 4, {});
    m_.let_go(logits);
    m_.free(logits);
    save(soft);
    m_.let_go(soft);
    m_.end_layer("loss");
    m_.backward();
    while (!steps_.empty()) backward_step();
    return m_.finish();
  }

 private:
  // A saved tensor waits for its op's backward; storages end with their last one.
  struct Saved {
    SavedId id;
    StorageId storage;
  };
  struct Step {
    std::vector<Saved> saved;
    Bytes made = 0;
  };

  void save(StorageId storage, std::int64_t offset = 0, std::int64_t count = -1) {
    steps_.back().saved.push_back({m_.pack(m_.view(storage, offset, count)), storage});
    uses_.resize(std::max(uses_.size(), storage.index() + 1), 0);
    ++uses_[storage.index()];
  }

  // An op that allocates quarters of kActivation and saves whole storages.
  StorageId op(const std::string& name, int size, const std::vector<StorageId>& saves) {
    m_.begin_op(name);
    const Bytes bytes = size * kActivation;
    m_.run(kNsPerMiB * size);
    const StorageId out = m_.alloc(bytes);
    const StorageId scratch = m_.alloc(4096);
    steps_.push_back({{}, bytes});
    for (const StorageId storage : saves) save(storage);
    m_.end_op();
    m_.free(scratch);
    return out;
  }

  StorageId make(const std::string& name, const std::string& layer, int size) {
    m_.begin_layer(layer);
    const StorageId out = op(name, size, {});
    m_.end_layer(layer);
    return out;
  }

  StorageId norm(const std::string& layer, StorageId x) {
    m_.begin_layer(layer);
    const StorageId out = op("aten::native_layer_norm", 1, {x});
    const StorageId mean = m_.alloc(4096);
    save(mean);
    m_.let_go(mean);
    const StorageId rstd = m_.alloc(4096);
    save(rstd);
    m_.let_go(rstd);
    m_.end_layer(layer);
    return out;
  }

  StorageId block(const std::string& path, StorageId x) {
    m_.begin_layer(path);
    const StorageId normed = norm(path + ".ln1", x);
    m_.begin_layer(path + ".attn");
    const StorageId qkv = op("aten::addmm", 3, {normed});
    m_.let_go(normed);
    const StorageId soft = op("aten::_softmax", 4, {});
    constexpr std::int64_t kElements = kActivation / 4;
    for (int part = 0; part < 3; ++part) save(qkv, part * kElements, kElements);
    m_.let_go(qkv);
    save(soft);
    const StorageId mixed = op("aten::bmm", 1, {soft});
    m_.let_go(soft);
    const StorageId projected = op("aten::addmm", 1, {mixed});
    m_.let_go(mixed);
    m_.end_layer(path + ".attn");
    const StorageId x2 = op("aten::add", 1, {});
    m_.let_go(x);
    m_.let_go(projected);
    m_.free(projected);
    const StorageId normed2 = norm(path + ".ln2", x2);
    m_.begin_layer(path + ".mlp");
    const StorageId wide = op("aten::addmm", 4, {normed2});
    m_.let_go(normed2);
    const StorageId gelu = op("aten::gelu", 4, {wide});
    m_.let_go(wide);
    const StorageId narrow = op("aten::addmm", 1, {gelu});
    m_.let_go(gelu);
    m_.end_layer(path + ".mlp");
    const StorageId out = op("aten::add", 1, {});
    m_.let_go(x2);
    m_.let_go(narrow);
    m_.free(narrow);
    m_.end_layer(path);
    return out;
  }

  void backward_step() {
    const Step step = steps_.back();
    steps_.pop_back();
    for (int half = 0; half < 2; ++half) {
      m_.begin_op(half == 0 ? "aten::mm_backward" : "aten::sum");
      std::vector<UnpackId> unpacks;
      if (half == 0) {
        for (const Saved& saved : step.saved) unpacks.push_back(m_.unpack(saved.id));
      }
      m_.run(kNsPerMiB * step.made / kActivation);
      const StorageId gradient = m_.alloc(step.made);
      m_.end_op();
      for (const UnpackId unpack : unpacks) m_.drop(unpack);
      if (half == 0) {
        for (const Saved& saved : step.saved) {
          if (--uses_[saved.storage.index()] == 0) m_.free(saved.storage);
        }
      }
      m_.free(gradient);
    }
  }

  testing::MicroTrace m_;
  std::vector<Step> steps_;
  std::vector<int> uses_;
};

}  // namespace

Trace made_up_model(int layers, std::int64_t link_bytes_per_second) {
  return Model().run(layers, link_bytes_per_second);
}

}  // namespace stowage::bench
