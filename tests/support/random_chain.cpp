#include "tests/support/random_chain.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/micro_trace.h"

namespace stowage::testing {
namespace {

class Chain {
 public:
  Chain(std::mt19937_64& random, ChainOps ops) : random_(random), ops_(ops) {}

  Trace write(int layers) {
    m_.link().d2h.bytes_per_second = {drawn(1, 20) * 50'000'000};
    m_.link().h2d.bytes_per_second = m_.link().d2h.bytes_per_second;
    m_.begin_op("embed");
    StorageId given = made();
    m_.end_op();
    for (int i = 0; i < layers; ++i) given = layer("layers." + std::to_string(i), given);
    m_.begin_op("loss");
    m_.run(drawn(1, 300));
    save(given);
    m_.end_op();
    gone(given);
    backward();
    return m_.finish();
  }

 private:
  std::int64_t drawn(std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(to - from + 1));
  }
  bool one_in(std::uint64_t of) { return random_() % of == 0; }

  StorageId made() {
    m_.run(drawn(20, 400));
    return m_.alloc(drawn(1, 60) * 4);
  }
  void save(StorageId storage) {
    saved_.emplace_back(m_.pack(storage), storage);
    ++left_[storage.value];
  }
  // The model's own reference goes.
  void gone(StorageId storage) {
    if (left_[storage.value] == 0) {
      m_.free(storage);
    } else {
      m_.let_go(storage);
    }
  }

  StorageId layer(const std::string& path, StorageId given) {
    m_.begin_layer(path);
    m_.passed(m_.view(given));
    std::vector<StorageId> inside = {given};
    const std::int64_t ops = drawn(2, 3);
    for (std::int64_t i = 0; i < ops; ++i) {
      m_.begin_op(ops_ == ChainOps::alone_too && one_in(3) ? "aten::exp"
                                                           : "op" + std::to_string(i));
      m_.read(inside.back());
      if (i == 0 || !one_in(4)) save(inside.back());
      const StorageId out = made();
      if (one_in(4)) save(out);
      m_.end_op();
      inside.push_back(out);
    }
    for (std::size_t i = 1; i + 1 < inside.size(); ++i) gone(inside[i]);
    m_.end_layer(path);
    m_.passed(m_.view(inside.back()));
    gone(given);
    return inside.back();
  }

  void backward() {
    m_.backward();
    for (; !saved_.empty(); saved_.pop_back()) {
      const auto [saved, storage] = saved_.back();
      m_.begin_op("backward");
      const UnpackId unpack = m_.unpack(saved);
      const StorageId gradient = made();
      m_.end_op();
      m_.drop(unpack);
      if (--left_[storage.value] == 0) m_.free(storage);
      m_.run(drawn(1, 50));
      m_.free(gradient);
    }
  }

  std::mt19937_64& random_;
  ChainOps ops_;
  MicroTrace m_;
  std::vector<std::pair<SavedId, StorageId>> saved_;
  std::map<std::int32_t, int> left_;  // by storage: saved tensors that backward has not asked for
};

}  // namespace

Trace random_chain(std::mt19937_64& random, int layers, ChainOps ops) {
  return Chain(random, ops).write(layers);
}

}  // namespace stowage::testing
