// A plugin whose whole step can run in micro-batches though it normalises over the batch: it trains
// otherwise in them, which `profile` has to say.
#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "executor/layer.h"
#include "executor/plugin.h"
#include "executor/tail.h"

namespace {

using stowage::executor::BackwardRoot;
using stowage::executor::Model;
using stowage::executor::ModelInfo;
using stowage::executor::ModelSpec;
using stowage::executor::NamedTensor;

constexpr std::int64_t kFeatures = 16;

class Net final : public Model {
 public:
  Net(const ModelSpec& spec, c10::Device device, at::ScalarType dtype) {
    const auto options = at::TensorOptions().device(device).dtype(dtype);
    x_ = at::empty({spec.batch, kFeatures}, options);
    weight_ = at::ones({kFeatures}, options).requires_grad_();
    bias_ = at::zeros({kFeatures}, options).requires_grad_();
  }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    return {{"weight", weight_}, {"bias", bias_}};
  }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return {}; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override { return {{"x", x_}}; }
  void load_batch(std::int64_t seed) override {
    x_.copy_(at::arange(x_.numel(), x_.options()).view_as(x_).add(seed).sin());
  }
  BackwardRoot forward() override {
    const stowage::TensorFn norm = [this](const std::vector<at::Tensor>& in) {
      return at::batch_norm(in[0], weight_, bias_, {}, {}, /*training=*/true, 0.1, 1e-5, false);
    };
    const stowage::TailFn all = [&norm](const std::vector<at::Tensor>& in) {
      return BackwardRoot{stowage::layer("norm", norm, {in[0]}).pow(2).mean(), {}};
    };
    return stowage::tail(stowage::kWholeStep, all, {x_});
  }

 private:
  at::Tensor x_, weight_, bias_;
};

ModelInfo info() {
  return {.name = "normed",
          .summary = "normalises over the batch, in a tail",
          .options = {},
          .default_batch = 8};
}

stowage::Result<std::unique_ptr<Model>> make(const ModelSpec& spec, c10::Device device,
                                             at::ScalarType dtype, std::int64_t /*seed*/) {
  return std::unique_ptr<Model>(std::make_unique<Net>(spec, device, dtype));
}

}  // namespace

STOWAGE_PLUGIN(info, make);
