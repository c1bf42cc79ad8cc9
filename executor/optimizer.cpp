#include "executor/optimizer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "executor/absent_storage.h"
#include "executor/device/host_work.h"
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
// The piece of state "PARAMETER.what".
const at::Tensor& piece(const HostTensors& tensors, const std::string& what) {
  for (const NamedTensor& each : tensors.state) {
    if (each.name.ends_with("." + what)) return each.tensor;
  }
  TORCH_CHECK(false, "stowage: the optimizer has no state '", what, "' on the host");
}

template <class ParamState>
std::unique_ptr<ParamState> adam_state(at::Tensor exp_avg, at::Tensor exp_avg_sq) {
  auto state = std::make_unique<ParamState>();
  state->step(0);
  state->exp_avg(std::move(exp_avg));
  state->exp_avg_sq(std::move(exp_avg_sq));
  return state;
}

// PyTorch's own step on tensors of the host, with the options and the count of `own`.
template <class Torch, class Options, class ParamState>
void adam_on_host(Torch& own, ParamState& own_state, const HostTensors& tensors, at::Tensor weights,
                  const at::Tensor& gradient) {
  const auto& options = static_cast<const Options&>(own.param_groups().front().options());
  Torch twin({weights}, options);
  auto state = adam_state<ParamState>(piece(tensors, "exp_avg"), piece(tensors, "exp_avg_sq"));
  state->step(own_state.step());
  ParamState& counted = *state;
  twin.state()[weights.unsafeGetTensorImpl()] = std::move(state);
  weights.mutable_grad() = gradient;
  twin.step();
  weights.mutable_grad().reset();
  own_state.step(counted.step());
}

// One parameter after the other, each between the driver's events.
class OneByOne : public Optimizer {
 public:
  void step() final {
    StepDriver* const current = driver();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& tensor = parameters_[i].tensor;
      if (!tensor.grad().defined()) continue;
      if (current == nullptr || !current->updates_elsewhere(tensor)) step_of(i);
    }
  }

  [[nodiscard]] std::vector<NamedTensor> state() const final {
    std::vector<NamedTensor> state;
    for (std::size_t i = 0; i < parameters_.size(); ++i) add_state(i, state);
    return state;
  }

  void update_through_host(const std::vector<at::Tensor>& parameters) final {
    for (const at::Tensor& each : parameters) {
      const std::size_t own = row_of(parameters_, each);
      if (own < parameters_.size()) through_host_[own] = true;
    }
  }

  void step_of(std::size_t parameter) final {
    const at::Tensor& tensor = parameters_[parameter].tensor;
    StepDriver* const current = driver();
    if (current != nullptr) current->parameter_update(UpdateEvent::begin, tensor);
    through_host_[parameter] ? host_update(parameter) : update(parameter);
    is_updated_[parameter] = 1;
    if (current != nullptr) current->parameter_update(UpdateEvent::end, tensor);
  }

  void step_on_host(std::size_t parameter, const HostTensors& tensors) final {
    update_on_host(parameter, tensors);
    is_updated_[parameter] = 1;
  }

  [[nodiscard]] std::vector<NamedTensor> written_state() const final {
    std::vector<NamedTensor> written = state();
    std::erase_if(written, [&](const NamedTensor& each) {
      const NamedTensor* const owner = owner_of_state(each.name, parameters_);
      return is_updated_[static_cast<std::size_t>(owner - parameters_.data())] == 0;
    });
    return written;
  }

 protected:
  explicit OneByOne(std::vector<NamedTensor> parameters)
      : parameters_(std::move(parameters)),
        through_host_(parameters_.size()),
        is_updated_(parameters_.size()) {}

  // A piece of state that no plan has given a home is made as ever.
  virtual void update(std::size_t parameter) = 0;
  virtual void update_on_host(std::size_t parameter, const HostTensors& tensors) = 0;
  // Appends the state of one, as far as there is some.
  virtual void add_state(std::size_t parameter, std::vector<NamedTensor>& state) const = 0;
  // Ahead of an update on the host: the state is there, with memory.
  virtual void prepare_state(std::size_t parameter) = 0;

  std::vector<NamedTensor> parameters_;

 private:
  // In the same form, which at home it has as well.
  static at::Tensor on_host(const at::Tensor& tensor) {
    at::Tensor host = at::empty_strided(tensor.sizes(), tensor.strides(),
                                        tensor.options().device(at::kCPU).requires_grad(false));
    return host.copy_(tensor);
  }

  void host_update(std::size_t parameter) {
    const at::NoGradGuard no_graph;
    prepare_state(parameter);
    std::vector<NamedTensor> state;
    add_state(parameter, state);
    at::Tensor weights = parameters_[parameter].tensor;
    const HostWorkGuard host_work;
    HostTensors tensors{on_host(weights), on_host(weights.grad()), {}};
    for (const NamedTensor& each : state) {
      tensors.state.push_back({each.name, on_host(each.tensor)});
    }
    step_on_host(parameter, tensors);
    weights.copy_(tensors.weights);
    for (std::size_t i = 0; i < state.size(); ++i) state[i].tensor.copy_(tensors.state[i].tensor);
  }

  std::vector<bool> through_host_;        // by parameter
  std::vector<std::uint8_t> is_updated_;  // by parameter
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

  void make_state(const std::vector<NamedTensor>& /*parameters*/) override {}

  void update_on_host(std::size_t parameter, const HostTensors& tensors) override {
    const auto& options =
        static_cast<const Options&>(torch_[parameter]->param_groups().front().options());
    at::Tensor weights = tensors.weights;
    Torch twin({weights}, options);
    weights.mutable_grad() = tensors.gradient;
    twin.step();
    weights.mutable_grad().reset();
  }

 protected:
  void update(std::size_t parameter) override { torch_[parameter]->step(); }
  void add_state(std::size_t /*parameter*/, std::vector<NamedTensor>& /*state*/) const override {}
  void prepare_state(std::size_t /*parameter*/) override {}

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

  void update_on_host(std::size_t parameter, const HostTensors& tensors) override {
    auto& states = this->torch_[parameter]->state();
    const auto found = states.find(this->parameters_[parameter].tensor.unsafeGetTensorImpl());
    TORCH_CHECK(found != states.end(), "stowage: the optimizer has no state yet");
    adam_on_host<Torch, Options>(*this->torch_[parameter], static_cast<ParamState&>(*found->second),
                                 tensors, tensors.weights, tensors.gradient);
  }

 protected:
  void update(std::size_t parameter) override {
    const at::NoGradGuard no_graph;
    auto& states = this->torch_[parameter]->state();
    const auto found = states.find(this->parameters_[parameter].tensor.unsafeGetTensorImpl());
    if (found != states.end()) make_moments(static_cast<const ParamState&>(*found->second));
    TorchOptimizer<Torch, Options>::update(parameter);
  }
  void add_state(std::size_t parameter, std::vector<NamedTensor>& state) const override {
    const NamedTensor& of = this->parameters_[parameter];
    const auto& states = this->torch_[parameter]->state();
    const auto found = states.find(of.tensor.unsafeGetTensorImpl());
    if (found == states.end()) return;
    const auto& own = static_cast<const ParamState&>(*found->second);
    state.push_back({of.name + ".exp_avg", own.exp_avg()});
    state.push_back({of.name + ".exp_avg_sq", own.exp_avg_sq()});
  }
  void prepare_state(std::size_t parameter) override {
    make_state({this->parameters_[parameter]});
    const auto& states = this->torch_[parameter]->state();
    make_moments(static_cast<const ParamState&>(
        *states.at(this->parameters_[parameter].tensor.unsafeGetTensorImpl())));
  }
};

// PyTorch's Adam on a copy of each parameter in fp32.
template <class Torch, class Options, class ParamState>
class MasterOptimizer final : public OneByOne {
 public:
  MasterOptimizer(std::vector<NamedTensor> parameters, const Options& options)
      : OneByOne(std::move(parameters)), options_(options), masters_(parameters_.size()) {}

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

  void update_on_host(std::size_t parameter, const HostTensors& tensors) override {
    Master& own = masters_[parameter];
    TORCH_CHECK(own.torch != nullptr, "stowage: the optimizer has no state yet");
    const at::Tensor& master = piece(tensors, "master");
    auto& state =
        static_cast<ParamState&>(*own.torch->state().at(own.weights.unsafeGetTensorImpl()));
    adam_on_host<Torch, Options>(*own.torch, state, tensors, master,
                                 tensors.gradient.to(at::kFloat));
    at::Tensor rounded = tensors.weights;
    rounded.copy_(master);
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

  void add_state(std::size_t parameter, std::vector<NamedTensor>& state) const override {
    const Master& master = masters_[parameter];
    if (master.torch == nullptr) return;
    const auto& own = static_cast<const ParamState&>(
        *master.torch->state().at(master.weights.unsafeGetTensorImpl()));
    const std::string& name = parameters_[parameter].name;
    state.push_back({name + ".master", master.weights});
    state.push_back({name + ".exp_avg", own.exp_avg()});
    state.push_back({name + ".exp_avg_sq", own.exp_avg_sq()});
  }

  void prepare_state(std::size_t parameter) override {
    make_state({parameters_[parameter]});
    give_memory_to(masters_[parameter], parameters_[parameter].tensor);
  }

  static void give_memory_to(Master& master, const at::Tensor& parameter) {
    if (is_unmade(master.weights)) {
      give_memory(master.weights);
      master.weights.copy_(parameter);
    }
    make_moments(static_cast<const ParamState&>(
        *master.torch->state().at(master.weights.unsafeGetTensorImpl())));
  }

  // All state is made ahead of the first temporary, which may have its size.
  void update(std::size_t i) override {
    const at::NoGradGuard no_graph;
    const at::Tensor& parameter = parameters_[i].tensor;
    Master& master = masters_[i];
    if (master.torch != nullptr) {
      give_memory_to(master, parameter);
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
