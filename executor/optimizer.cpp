#include "executor/optimizer.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <utility>

#include "executor/models/option_reader.h"

namespace stowage::executor {

namespace {

constexpr double kSgdRate = 1e-2;
constexpr double kAdamRate = 1e-3;

std::vector<at::Tensor> tensors(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> result;
  result.reserve(named.size());
  for (const NamedTensor& each : named) result.push_back(each.tensor);
  return result;
}

template <class Torch>
class TorchOptimizer : public Optimizer {
 public:
  template <class Options>
  TorchOptimizer(std::vector<NamedTensor> parameters, const Options& options)
      : parameters_(std::move(parameters)), torch_(tensors(parameters_), options) {}

  void step() override { torch_.step(); }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return {}; }

 protected:
  std::vector<NamedTensor> parameters_;
  Torch torch_;
};

template <class Torch, class ParamState>
class AdamOptimizer final : public TorchOptimizer<Torch> {
 public:
  using TorchOptimizer<Torch>::TorchOptimizer;

  [[nodiscard]] std::vector<NamedTensor> state() const override {
    std::vector<NamedTensor> result;
    const auto& states = this->torch_.state();
    for (const NamedTensor& parameter : this->parameters_) {
      const auto found = states.find(parameter.tensor.unsafeGetTensorImpl());
      if (found == states.end()) continue;
      const auto& state = static_cast<const ParamState&>(*found->second);
      result.push_back({parameter.name + ".exp_avg", state.exp_avg()});
      result.push_back({parameter.name + ".exp_avg_sq", state.exp_avg_sq()});
    }
    return result;
  }
};

}  // namespace

Result<OptimizerKind> parse_optimizer(const std::string& name) {
  if (name == "none") return OptimizerKind::none;
  if (name == "sgd") return OptimizerKind::sgd;
  if (name == "adam") return OptimizerKind::adam;
  if (name == "adamw") return OptimizerKind::adamw;
  return usage_error("unknown optimizer '" + name + "'",
                     suggestion(name, {"none", "sgd", "adam", "adamw"}));
}

std::string to_string(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::none:
      return "none";
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::adamw:
      return "adamw";
  }
  return "none";
}

std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, double learning_rate,
                                          std::vector<NamedTensor> parameters) {
  using namespace torch::optim;
  const double adam_rate = learning_rate == 0 ? kAdamRate : learning_rate;
  switch (kind) {
    case OptimizerKind::none:
      return nullptr;
    case OptimizerKind::sgd: {
      const double rate = learning_rate == 0 ? kSgdRate : learning_rate;
      return std::make_unique<TorchOptimizer<SGD>>(std::move(parameters), SGDOptions(rate));
    }
    case OptimizerKind::adam:
      return std::make_unique<AdamOptimizer<Adam, AdamParamState>>(std::move(parameters),
                                                                   AdamOptions(adam_rate));
    case OptimizerKind::adamw:
      return std::make_unique<AdamOptimizer<AdamW, AdamWParamState>>(std::move(parameters),
                                                                     AdamWOptions(adam_rate));
  }
  return nullptr;
}

}  // namespace stowage::executor
