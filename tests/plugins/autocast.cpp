// A plugin whose layers run under autocast (bf16), in two ways: a layer that enters it itself, as a
// model does whose forward is decorated, and layers that are called where the caller has entered
// it, with the cache of casts on. Weights are fp32 and used twice, within a layer and by two
// layers, so that a cast is cached and served to others.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/layer.h"
#include "executor/models/option_reader.h"
#include "executor/plugin.h"

namespace {

using stowage::executor::BackwardRoot;
using stowage::executor::Model;
using stowage::executor::ModelInfo;
using stowage::executor::ModelSpec;
using stowage::executor::NamedTensor;
using Inputs = std::vector<at::Tensor>;

constexpr std::int64_t kWidth = 32;

// torch.autocast(device, torch.bfloat16)
class Autocast {
 public:
  explicit Autocast(at::DeviceType device)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType dtype_;
};

class Net final : public Model {
 public:
  Net(const ModelSpec& spec, c10::Device device, at::ScalarType dtype) {
    const auto options = at::TensorOptions().device(device).dtype(dtype);
    x_ = at::empty({spec.batch, kWidth}, options);
    for (double value : {0.10, 0.11, 0.12, 0.13}) {
      at::Tensor weight = at::eye(kWidth, options) * 0.5 + value / 4;
      weights_.push_back(weight.requires_grad_());
    }
  }

  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> all;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      all.push_back({"weights." + std::to_string(i), weights_[i]});
    }
    return all;
  }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return {}; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override { return {{"x", x_}}; }

  void load_batch(std::int64_t seed) override {
    x_.copy_(at::arange(x_.numel(), x_.options()).view_as(x_).add(seed).sin());
  }

  BackwardRoot forward() override {
    const at::DeviceType device = x_.device().type();
    at::Tensor y = x_;
    for (int i = 0; i < 2; ++i) {
      y = stowage::layer(
          "own." + std::to_string(i),
          [this, i, device](const Inputs& in) {
            const Autocast autocast(device);
            return block(in[0], weights_[static_cast<std::size_t>(i)]);
          },
          Inputs{std::move(y)});
    }
    {
      const Autocast autocast(device);
      for (int i = 0; i < 3; ++i) {
        // The first and the last have one weight: the second cast of it is the cache's.
        y = stowage::layer(
            "shared." + std::to_string(i),
            [this, i](const Inputs& in) {
              return block(in[0], weights_[static_cast<std::size_t>(2 + i % 2)]);
            },
            Inputs{std::move(y)});
      }
      y = stowage::layer(
          "loss", [](const Inputs& in) { return in[0].to(at::kFloat).square().mean(); },
          Inputs{std::move(y)});
    }
    return {.tensor = std::move(y), .gradient = {}};
  }

 private:
  // The weight is used three times: one cast. The input twice, a cast each time, as it is no leaf.
  static at::Tensor block(const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor gate = at::sigmoid(at::matmul(x, weight));
    const at::Tensor up = at::gelu(at::matmul(x, weight)) * gate;
    const at::Tensor dropped = at::dropout(up, 0.25, true);
    return x + at::matmul(dropped, weight) + at::softmax(up, -1);
  }

  at::Tensor x_;
  std::vector<at::Tensor> weights_;
};

ModelInfo info() {
  return {
      .name = "autocast", .summary = "layers under autocast", .options = {}, .default_batch = 8};
}

stowage::Result<std::unique_ptr<Model>> make(const ModelSpec& spec, c10::Device device,
                                             at::ScalarType dtype, std::int64_t) {
  return std::unique_ptr<Model>(std::make_unique<Net>(spec, device, dtype));
}

}  // namespace

STOWAGE_PLUGIN(info, make);
