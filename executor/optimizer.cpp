#include "executor/optimizer.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "executor/absent_storage.h"
#include "executor/models/option_reader.h"
#include "executor/step_driver.h"

namespace stowage::executor {

namespace {

constexpr double kSgdRate = 1e-2;
constexpr double kAdamRate = 1e-3;

// One of PyTorch's optimizers a parameter: the same ops in the same order as one for all of them.
template <class Torch, class Options>
class TorchOptimizer : public Optimizer {
 public:
  TorchOptimizer(std::vector<NamedTensor> parameters, const Options& options)
      : parameters_(std::move(parameters)) {
    torch_.reserve(parameters_.size());
    for (const NamedTensor& each : parameters_) {
      torch_.push_back(std::make_unique<Torch>(std::vector<at::Tensor>{each.tensor}, options));
    }
  }

  void step() override {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& parameter = parameters_[i].tensor;
      if (!parameter.grad().defined()) continue;
      StepDriver* const current = driver();
      if (current != nullptr) current->parameter_update(UpdateEvent::begin, parameter);
      torch_[i]->step();
      if (current != nullptr) current->parameter_update(UpdateEvent::end, parameter);
    }
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return {}; }
  void make_state(const std::vector<NamedTensor>& /*parameters*/) override {}

 protected:
  std::vector<NamedTensor> parameters_;
  std::vector<std::unique_ptr<Torch>> torch_;  // by parameter
};

template <class Torch, class Options, class ParamState>
class AdamOptimizer final : public TorchOptimizer<Torch, Options> {
 public:
  using TorchOptimizer<Torch, Options>::TorchOptimizer;

  [[nodiscard]] std::vector<NamedTensor> state() const override {
    std::vector<NamedTensor> result;
    for (std::size_t i = 0; i < this->parameters_.size(); ++i) {
      const NamedTensor& parameter = this->parameters_[i];
      const auto& states = this->torch_[i]->state();
      const auto found = states.find(parameter.tensor.unsafeGetTensorImpl());
      if (found == states.end()) continue;
      const auto& state = static_cast<const ParamState&>(*found->second);
      result.push_back({parameter.name + ".exp_avg", state.exp_avg()});
      result.push_back({parameter.name + ".exp_avg_sq", state.exp_avg_sq()});
    }
    return result;
  }

  void make_state(const std::vector<NamedTensor>& parameters) override {
    for (const NamedTensor& each : parameters) {
      const auto own =
          std::find_if(this->parameters_.begin(), this->parameters_.end(),
                       [&](const NamedTensor& known) { return known.tensor.is_same(each.tensor); });
      if (own == this->parameters_.end()) continue;
      auto& states =
          this->torch_[static_cast<std::size_t>(own - this->parameters_.begin())]->state();
      auto& state = states[each.tensor.unsafeGetTensorImpl()];
      if (state != nullptr) continue;
      auto made = std::make_unique<ParamState>();
      made->step(0);
      made->exp_avg(zeros(each, ".exp_avg"));
      made->exp_avg_sq(zeros(each, ".exp_avg_sq"));
      state = std::move(made);
    }
  }

 private:
  static at::Tensor zeros(const NamedTensor& parameter, const char* what) {
    return zeros_without_memory(parameter.tensor,
                                "stowage: optimizer state " + parameter.name + what +
                                    " has no memory: the plan that was to stream it is not there");
  }
};

}  // namespace

const NamedTensor* owner_of_state(const std::string& name,
                                  const std::vector<NamedTensor>& parameters) {
  const NamedTensor* owner = nullptr;  // with the longest name
  for (const NamedTensor& each : parameters) {
    const bool fits = name.size() > each.name.size() && name.starts_with(each.name) &&
                      name[each.name.size()] == '.';
    if (fits && (owner == nullptr || each.name.size() > owner->name.size())) owner = &each;
  }
  return owner;
}

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
      return std::make_unique<TorchOptimizer<SGD, SGDOptions>>(std::move(parameters),
                                                               SGDOptions(rate));
    }
    case OptimizerKind::adam:
      return std::make_unique<AdamOptimizer<Adam, AdamOptions, AdamParamState>>(
          std::move(parameters), AdamOptions(adam_rate));
    case OptimizerKind::adamw:
      return std::make_unique<AdamOptimizer<AdamW, AdamWOptions, AdamWParamState>>(
          std::move(parameters), AdamWOptions(adam_rate));
  }
  return nullptr;
}

}  // namespace stowage::executor
