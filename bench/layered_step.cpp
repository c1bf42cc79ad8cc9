#include "bench/layered_step.h"

#include <memory>
#include <string>
#include <utility>

#include "tests/support/micro_trace.h"

namespace stowage::bench {
namespace {

using simulator::Piece;
using testing::MicroTrace;

constexpr int kForwardOps = 25;
constexpr Bytes kBytes = 4 << 20;

// The step as it is, or each layer run again in backward (the pass recompute_all).
class Layers {
 public:
  explicit Layers(bool again) : again_(again) {}

  void run(int layers) {
    t_.link() = link();
    for (int l = 0; l < layers; ++l) {
      Layer layer;
      layer.name = "layers." + std::to_string(l);
      layer.forward.first = next();
      forward(layer, !again_);
      if (again_) free_inner(layer);
      layer.forward.end = next();
      layers_.push_back(layer);
    }
    t_.backward();
    for (std::size_t l = layers_.size(); l-- > 0;) backward(layers_[l]);
  }

  struct Layer {
    std::string name;
    std::vector<StorageId> made;  // outputs of its ops that live on
    std::vector<SavedId> saved;
    StorageId output;
    Piece forward, rerun, backward;
  };
  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
  Trace finish() { return t_.finish(); }

 private:
  static Calibration link() {
    Calibration calibration;
    calibration.d2h = testing::flat_link(50'000'000'000, 2000);
    calibration.h2d = calibration.d2h;
    calibration.duplex = 884'000;
    calibration.copy_interference = 980'000;
    calibration.compute_interference = 990'000;
    return calibration;
  }

  [[nodiscard]] EventId next() const { return EventId(t_.last_event().index() + 1); }

  StorageId op(bool makes) {
    t_.begin_op();
    const StorageId temporary = t_.alloc(kBytes, StorageClass::temporary);
    t_.begin_op();
    if (input_.valid()) t_.read(input_);
    t_.run(40'000).end_op();
    t_.free(temporary);
    return makes ? t_.alloc(kBytes) : StorageId();
  }

  void forward(Layer& layer, bool saves) {
    layer.made.clear();
    t_.begin_layer(layer.name);
    for (int i = 0; i < kForwardOps; ++i) {
      const StorageId made = op(true);
      if (saves && i % 2 == 0) layer.saved.push_back(t_.pack(made));
      t_.end_op();
      if (i + 1 == kForwardOps) {
        layer.output = layer.output.valid() ? layer.output : made;
        if (layer.output != made) t_.free(made);
      } else if (saves && i % 2 == 0) {
        t_.let_go(made);
        layer.made.push_back(made);
      } else {
        t_.free(made);
      }
      input_ = made;
    }
    t_.end_layer(layer.name);
    input_ = layer.output;
  }

  // Without saving, all but the layer's output went with its last reader.
  void free_inner(Layer& layer) { layer.made.clear(); }

  void backward(Layer& layer) {
    if (again_) {
      layer.rerun.first = next();
      input_ = StorageId();
      forward(layer, true);
      layer.rerun.end = next();
    }
    input_ = StorageId();
    layer.backward.first = next();
    t_.begin_layer_backward(layer.name);
    for (int i = 0; i < 2 * kForwardOps; ++i) {
      op(false);
      if (i % 4 == 0 && !layer.saved.empty()) {
        t_.unpack(layer.saved.back());
        layer.saved.pop_back();
      }
      t_.end_op();
    }
    for (const StorageId made : layer.made) t_.free(made);
    t_.free(layer.output);
    t_.end_layer_backward(layer.name);
    layer.backward.end = next();
  }

  bool again_;
  MicroTrace t_;
  StorageId input_;
  std::vector<Layer> layers_;
};

}  // namespace

LayeredStep layered_step(int layers) {
  Layers recorded(false);
  recorded.run(layers);
  Layers again(true);
  again.run(layers);
  const auto pass = std::make_shared<const Trace>(again.finish());
  LayeredStep made;
  made.recording = recorded.finish();
  for (std::size_t l = 0; l < recorded.layers().size(); ++l) {
    const Layers::Layer& then = recorded.layers()[l];
    Layers::Layer now = again.layers()[l];
    for (Piece* piece : {&now.forward, &now.rerun, &now.backward}) piece->source = 0;
    now.rerun.pass = simulator::Pass::recompute;
    simulator::StepTemplate recompute;
    recompute.segment = then.name;
    recompute.sources.push_back({"recompute_all", pass, {{now.output, then.output}}});
    if (l > 0) {
      recompute.sources[0].storages.emplace_back(again.layers()[l - 1].output,
                                                 recorded.layers()[l - 1].output);
    }
    recompute.replacements.push_back({then.forward.first, then.forward.end, {now.forward}});
    recompute.replacements.push_back(
        {then.backward.first, then.backward.end, {now.rerun, now.backward}});
    made.recompute.push_back(std::move(recompute));
  }
  return made;
}

}  // namespace stowage::bench
