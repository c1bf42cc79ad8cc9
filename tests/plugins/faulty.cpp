// A plugin of two layers that works with fault=none, and else goes wrong in the way that the option
// names.
#include <ATen/ATen.h>

#include <stdexcept>

#include "executor/layer.h"
#include "executor/models/option_reader.h"
#include "executor/plugin.h"

namespace {

using stowage::executor::BackwardRoot;
using stowage::executor::Model;
using stowage::executor::ModelInfo;
using stowage::executor::ModelSpec;
using stowage::executor::NamedTensor;

class Net final : public Model {
 public:
  Net(std::string fault, const ModelSpec& spec, c10::Device device, at::ScalarType dtype)
      : fault_(std::move(fault)) {
    const auto options = at::TensorOptions().device(device).dtype(dtype);
    x_ = at::empty({spec.batch, 16}, options);
    a_ = at::full({16, 16}, 0.1, options).requires_grad_();
    b_ = at::full({16, 16}, 0.2, options).requires_grad_();
  }

  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    if (fault_ == "no-parameters") return {};
    if (fault_ == "duplicate-name") return {{"a", a_}, {"a", b_}};
    if (fault_ == "duplicate-tensor") return {{"a", a_}, {"b", a_}};
    if (fault_ == "frozen") return {{"a", a_.detach()}, {"b", b_}};
    if (fault_ == "undefined") return {{"a", {}}, {"b", b_}};
    return {{"a", a_}, {"b", b_}};
  }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return {}; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override { return {{"x", x_}}; }

  void load_batch(std::int64_t seed) override {
    if (fault_ == "batch-throws") throw std::runtime_error("no data today");
    if (fault_ == "batch-anew") x_ = at::empty_like(x_);
    x_.fill_(static_cast<double>(seed % 7) / 7);
  }

  BackwardRoot forward() override {
    if (fault_ == "forward-throws") throw std::logic_error("forward\nin two lines");
    if (fault_ == "forward-throws-int") throw 42;  // NOLINT
    if (fault_ == "torch-error") return {.tensor = at::mm(x_, x_), .gradient = {}};
    if (fault_ == "no-graph") return {.tensor = x_.sum(), .gradient = {}};
    if (fault_ == "not-scalar") return {.tensor = at::mm(x_, a_), .gradient = {}};
    if (fault_ == "no-result") return {};
    // Neither the sum nor the addition saves a tensor.
    if (fault_ == "nothing-saved") return {.tensor = a_.sum() + b_.sum(), .gradient = {}};
    using Inputs = std::vector<at::Tensor>;
    at::Tensor y = stowage::layer(
        "first", [this](const Inputs& in) { return at::tanh(at::mm(in[0], a_)); }, {x_});
    y = stowage::layer(
        "second", [this](const Inputs& in) { return at::tanh(at::mm(in[0], b_)); },
        Inputs{std::move(y)});
    if (fault_.starts_with("backward-throws")) {
      y.register_hook([fault = fault_](const at::Tensor&) {
        if (fault == "backward-throws-int") throw 42;  // NOLINT
        TORCH_CHECK(fault != "backward-throws-torch", "no gradient today");
        throw std::runtime_error("no gradient\ntoday");
      });
    }
    if (fault_ == "loss-throws") {
      stowage::layer("loss",
                     [](const Inputs&) -> at::Tensor { throw std::runtime_error("no loss today"); },
                     {y});
    }
    return {.tensor = y.sum(), .gradient = {}};
  }

 private:
  std::string fault_;
  at::Tensor x_, a_, b_;
};

ModelInfo info() {
  return {.name = "faulty",
          .summary = "two layers, and a fault",
          .options = {{"fault", "none", "what goes wrong"},
                      {"seq", "", "of no meaning, and no number"}},
          .default_batch = 8};
}

stowage::Result<std::unique_ptr<Model>> make(const ModelSpec& spec, c10::Device device,
                                             at::ScalarType dtype, std::int64_t) {
  const std::string fault = spec.options.at("fault");
  if (fault == "make-throws") throw std::runtime_error("out of ideas");
  if (fault == "make-throws-int") throw 42;  // NOLINT
  if (fault == "make-refuses") return stowage::executor::usage_error("fault=make-refuses, it says");
  if (fault == "no-model") return std::unique_ptr<Model>();
  return std::unique_ptr<Model>(std::make_unique<Net>(fault, spec, device, dtype));
}

}  // namespace

STOWAGE_PLUGIN(info, make);
