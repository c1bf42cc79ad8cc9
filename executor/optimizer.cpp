#include "executor/optimizer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "executor/absent_storage.h"
#include "executor/step_driver.h"

namespace stowage::executor {

namespace {

constexpr double kSgdRate = 1e-2;
constexpr double kAdamRate = 1e-3;

// Row of the parameter that this tensor is, their number where it is none.
std::size_t row_of(const std::vector<NamedTensor>& parameters, const at::Tensor& tensor) {
  const auto own =
      std::find_if(parameters.begin(), parameters.end(),
                   [&](const NamedTensor& known) { return known.tensor.is_same(tensor); });
  return static_cast<std::size_t>(own - parameters.begin());
}

// As the first step would make it.
template <class ParamState>
std::unique_ptr<ParamState> adam_state(at::Tensor exp_avg, at::Tensor exp_avg_sq) {
  auto state = std::make_unique<ParamState>();
  state->step(0);
  state->exp_avg(std::move(exp_avg));
  state->exp_avg_sq(std::move(exp_avg_sq));
  return state;
}

// One parameter after the other, each between the driver's events.
class OneByOne : public Optimizer {
 public:
  void step() final {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].tensor.grad().defined()) step_of(i);
    }
  }

  void step_of(std::size_t parameter) final {
    const at::Tensor& tensor = parameters_[parameter].tensor;
    StepDriver* const current = driver();
    if (current != nullptr) current->parameter_update(UpdateEvent::begin, tensor);
    update(parameter);
    is_updated_[parameter] = true;
    if (current != nullptr) current->parameter_update(UpdateEvent::end, tensor);
  }

  [[nodiscard]] std::vector<NamedTensor> written_state() const final {
    std::vector<NamedTensor> written = state();
    std::erase_if(written, [&](const NamedTensor& each) {
      const NamedTensor* const owner = owner_of_state(each.name, parameters_);
      return !is_updated_[static_cast<std::size_t>(owner - parameters_.data())];
    });
    return written;
  }

 protected:
  explicit OneByOne(std::vector<NamedTensor> parameters)
      : parameters_(std::move(parameters)), is_updated_(parameters_.size(), false) {}

  // A piece of state that no plan has given a home is made as ever.
  virtual void update(std::size_t parameter) = 0;

  std::vector<NamedTensor> parameters_;

 private:
  std::vector<bool> is_updated_;  // by parameter
};

// One of PyTorch's optimizers a parameter: the same ops in the same order as one for all of them.
template <class Torch, class Options>
class TorchOptimizer : public OneByOne {
 public:
  TorchOptimizer(std::vector<NamedTensor> parameters, const Options& options)
      : OneByOne(std::move(parameters)) {
    torch_.reserve(parameters_.size());
    for (const NamedTensor& each : parameters_) {
      torch_.push_back(std::make_unique<Torch>(std::vector<at::Tensor>{each.tensor}, options));
    }
  }

  [[nodiscard]] std::vector<NamedTensor> state() const override { return {}; }
  void make_state(const std::vector<NamedTensor>& /*parameters*/) override {}

 protected:
  void update(std::size_t parameter) override { torch_[parameter]->step(); }

  std::vector<std::unique_ptr<Torch>> torch_;  // by parameter
};

bool is_unmade(const at::Tensor& state) {
  return has_no_memory_yet(*state.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

// As the first step would make it, without its values.
void give_memory(const at::Tensor& state) {
  c10::StorageImpl* const storage =
      state.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  const at::Tensor memory =
      at::empty({static_cast<std::int64_t>(storage->nbytes())}, state.options().dtype(at::kByte));
  make_present(*storage,
               std::move(memory.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
}

template <class ParamState>
void make_moments(const ParamState& state) {
  for (at::Tensor moment : {state.exp_avg(), state.exp_avg_sq()}) {
    if (!is_unmade(moment)) continue;
    give_memory(moment);
    moment.zero_();
  }
}

std::string unmade_text(const NamedTensor& parameter, const char* what) {
  return "stowage: optimizer state " + parameter.name + what +
         " has no memory yet: no plan and no step has made it";
}

at::Tensor unmade_zeros(const NamedTensor& parameter, at::ScalarType dtype, const char* what) {
  return without_memory(parameter.tensor, dtype, unmade_text(parameter, what));
}

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
      const std::size_t own = row_of(this->parameters_, each.tensor);
      if (own == this->parameters_.size()) continue;
      auto& state = this->torch_[own]->state()[each.tensor.unsafeGetTensorImpl()];
      if (state != nullptr) continue;
      const at::ScalarType dtype = each.tensor.scalar_type();
      state = adam_state<ParamState>(unmade_zeros(each, dtype, ".exp_avg"),
                                     unmade_zeros(each, dtype, ".exp_avg_sq"));
    }
  }

 protected:
  void update(std::size_t parameter) override {
    const at::NoGradGuard no_graph;
    auto& states = this->torch_[parameter]->state();
    const auto found = states.find(this->parameters_[parameter].tensor.unsafeGetTensorImpl());
    if (found != states.end()) make_moments(static_cast<const ParamState&>(*found->second));
    TorchOptimizer<Torch, Options>::update(parameter);
  }
};

// PyTorch's Adam on a copy of each parameter in fp32.
template <class Torch, class Options, class ParamState>
class MasterOptimizer final : public OneByOne {
 public:
  MasterOptimizer(std::vector<NamedTensor> parameters, const Options& options)
      : OneByOne(std::move(parameters)), options_(options), masters_(parameters_.size()) {}

  [[nodiscard]] std::vector<NamedTensor> state() const override {
    std::vector<NamedTensor> result;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Master& master = masters_[i];
      if (master.torch == nullptr) continue;
      const auto& state = static_cast<const ParamState&>(
          *master.torch->state().at(master.weights.unsafeGetTensorImpl()));
      const std::string& name = parameters_[i].name;
      result.push_back({name + ".master", master.weights});
      result.push_back({name + ".exp_avg", state.exp_avg()});
      result.push_back({name + ".exp_avg_sq", state.exp_avg_sq()});
    }
    return result;
  }

  void make_state(const std::vector<NamedTensor>& parameters) override {
    for (const NamedTensor& each : parameters) {
      const std::size_t own = row_of(parameters_, each.tensor);
      if (own == parameters_.size() || masters_[own].torch != nullptr) continue;
      const at::Tensor weights =
          without_memory(each.tensor, at::kFloat, unmade_text(each, ".master"),
                         [from = each.tensor](std::byte* home) { widen(from, home); });
      take(own, weights, unmade_zeros(each, at::kFloat, ".exp_avg"),
           unmade_zeros(each, at::kFloat, ".exp_avg_sq"));
    }
  }

 private:
  struct Master {
    at::Tensor weights;
    std::unique_ptr<Torch> torch;
  };

  // In the form of without_memory(). The parameter itself: a view would hold its memory.
  static void widen(const at::Tensor& from, std::byte* home) {
    const at::NoGradGuard no_graph;
    const at::Tensor form = at::empty_like(from, from.options().device(at::kMeta));
    at::from_blob(home, form.sizes(), form.strides(), at::TensorOptions(at::kFloat)).copy_(from);
  }

  void take(std::size_t i, const at::Tensor& weights, at::Tensor exp_avg, at::Tensor exp_avg_sq) {
    Master& master = masters_[i];
    master.weights = weights;
    master.torch = std::make_unique<Torch>(std::vector<at::Tensor>{weights}, options_);
    master.torch->state()[weights.unsafeGetTensorImpl()] =
        adam_state<ParamState>(std::move(exp_avg), std::move(exp_avg_sq));
  }

  // All state is made ahead of the first temporary, which may have its size.
  void update(std::size_t i) override {
    const at::NoGradGuard no_graph;
    const at::Tensor& parameter = parameters_[i].tensor;
    Master& master = masters_[i];
    if (master.torch != nullptr) {
      if (is_unmade(master.weights)) {
        give_memory(master.weights);
        master.weights.copy_(parameter);
      }
      make_moments(static_cast<const ParamState&>(
          *master.torch->state().at(master.weights.unsafeGetTensorImpl())));
    } else {
      at::Tensor weights = at::empty_like(parameter, parameter.options().dtype(at::kFloat));
      weights.copy_(parameter);
      const at::Tensor exp_avg = at::zeros_like(weights);
      const at::Tensor exp_avg_sq = at::zeros_like(weights);
      take(i, weights, exp_avg, exp_avg_sq);
    }
    master.weights.mutable_grad() = parameter.grad().to(at::kFloat);
    master.torch->step();
    master.weights.mutable_grad().reset();
    at::Tensor rounded = parameter;
    rounded.copy_(master.weights);
  }

  Options options_;
  std::vector<Master> masters_;  // by parameter
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

namespace {

template <class Torch, class Options, class ParamState>
std::unique_ptr<Optimizer> make_adam(bool master, double rate,
                                     std::vector<NamedTensor> parameters) {
  if (master) {
    return std::make_unique<MasterOptimizer<Torch, Options, ParamState>>(std::move(parameters),
                                                                         Options(rate));
  }
  return std::make_unique<AdamOptimizer<Torch, Options, ParamState>>(std::move(parameters),
                                                                     Options(rate));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                          std::vector<NamedTensor> parameters) {
  using namespace torch::optim;
  const double adam_rate = spec.learning_rate == 0 ? kAdamRate : spec.learning_rate;
  switch (spec.kind) {
    case OptimizerKind::none:
      return nullptr;
    case OptimizerKind::sgd: {
      const double rate = spec.learning_rate == 0 ? kSgdRate : spec.learning_rate;
      return std::make_unique<TorchOptimizer<SGD, SGDOptions>>(std::move(parameters),
                                                               SGDOptions(rate));
    }
    case OptimizerKind::adam:
      return make_adam<Adam, AdamOptions, AdamParamState>(spec.master, adam_rate,
                                                          std::move(parameters));
    case OptimizerKind::adamw:
      return make_adam<AdamW, AdamWOptions, AdamWParamState>(spec.master, adam_rate,
                                                             std::move(parameters));
  }
  return nullptr;
}

}  // namespace stowage::executor
