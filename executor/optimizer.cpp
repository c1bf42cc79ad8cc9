#include "executor/optimizer.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "executor/one_by_one.h"
#include "executor/one_tensor.h"
#include "executor/unmade_state.h"

namespace stowage::executor {

namespace {

constexpr double kSgdRate = 1e-2;
constexpr double kAdamRate = 1e-3;
constexpr const char* kMaster = "master";

// The piece of state "PARAMETER.what".
const at::Tensor& piece(const HostTensors& tensors, const std::string& what) {
  for (const NamedTensor& each : tensors.state) {
    if (each.name.ends_with("." + what)) return each.tensor;
  }
  TORCH_CHECK(false, "stowage: the optimizer has no state '", what, "' on the host");
}

// Updates each parameter itself, or its master where that takes its place; both have the same
// state.
template <class Kind>
class Moments : public OneByOne {
 public:
  using Options = typename Kind::Options;

  void set_learning_rate(double rate) override { options_.lr(rate); }

 protected:
  Moments(std::vector<NamedTensor> parameters, const Options& options)
      : OneByOne(std::move(parameters)), options_(options), names_(Kind::names(options)) {}

  [[nodiscard]] TensorList unmade(const NamedTensor& of, at::ScalarType dtype) const {
    TensorList pieces;
    for (const char* const name : names_) {
      pieces.push_back(unmade_state(of, dtype, name, fill_with(Kind::kBegin, of.tensor, dtype)));
    }
    return pieces;
  }
  void add_named(const std::string& owner, const TensorList& pieces,
                 std::vector<NamedTensor>& state) const {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      state.push_back({owner + "." + names_[i], pieces[i]});
    }
  }
  [[nodiscard]] TensorList pieces_of(const HostTensors& tensors) const {
    TensorList pieces;
    for (const char* const name : names_) pieces.push_back(piece(tensors, name));
    return pieces;
  }
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  Options options_;
  std::vector<const char*> names_;
};

template <class Kind>
class TorchOptimizer final : public Moments<Kind> {
 public:
  TorchOptimizer(std::vector<NamedTensor> parameters, const typename Kind::Options& options)
      : Moments<Kind>(std::move(parameters), options) {
    torch_.reserve(this->parameters().size());
    for (const NamedTensor& each : this->parameters()) torch_.emplace_back(each.tensor, options);
  }

 private:
  void update(std::size_t i) override { torch_[i].step(this->options()); }
  void update_on_host(std::size_t i, const HostTensors& part) const override {
    torch_[i].step_on_host(this->options(), part.weights, part.gradient, this->pieces_of(part));
  }
  void count_update_on_host(std::size_t i) override { torch_[i].count_step(); }
  void add_state(std::size_t i, std::vector<NamedTensor>& state) const override {
    this->add_named(this->parameter(i).name, torch_[i].state(), state);
  }
  void make_state_of(std::size_t i) override {
    const NamedTensor& of = this->parameter(i);
    if (torch_[i].state().empty()) torch_[i].take_state(this->unmade(of, of.tensor.scalar_type()));
  }
  void prepare_state(std::size_t i) override {
    make_state_of(i);
    torch_[i].give_memory();
  }

  std::vector<OneTensor<Kind>> torch_;  // by parameter
};

// PyTorch's optimizer on a copy of each parameter in fp32.
template <class Kind>
class MasterOptimizer final : public Moments<Kind> {
 public:
  MasterOptimizer(std::vector<NamedTensor> parameters, const typename Kind::Options& options)
      : Moments<Kind>(std::move(parameters), options), masters_(this->parameters().size()) {}

 private:
  struct Master {
    at::Tensor weights;
    OneTensor<Kind> torch;
  };

  // In the form of without_memory(). The parameter itself: a view would hold its memory.
  static void widen(const at::Tensor& from, std::byte* home) {
    const at::NoGradGuard no_graph;
    const at::Tensor form = at::empty_like(from, from.options().device(at::kMeta));
    at::from_blob(home, form.sizes(), form.strides(), at::TensorOptions(at::kFloat)).copy_(from);
  }

  Master& take(std::size_t i, const at::Tensor& weights) {
    return masters_[i].emplace(Master{weights, {weights, this->options()}});
  }

  void make_state_of(std::size_t i) override {
    if (masters_[i]) return;
    const NamedTensor& of = this->parameter(i);
    const auto fill = [from = of.tensor](std::byte* home) { widen(from, home); };
    take(i, unmade_state(of, at::kFloat, kMaster, fill))
        .torch.take_state(this->unmade(of, at::kFloat));
  }

  void add_state(std::size_t i, std::vector<NamedTensor>& state) const override {
    if (!masters_[i]) return;
    const std::string& name = this->parameter(i).name;
    state.push_back({name + "." + kMaster, masters_[i]->weights});
    this->add_named(name, masters_[i]->torch.state(), state);
  }

  void prepare_state(std::size_t i) override {
    make_state_of(i);
    give_memory_to(*masters_[i], this->parameter(i).tensor);
  }

  static void give_memory_to(Master& master, const at::Tensor& parameter) {
    if (is_unmade(master.weights)) {
      give_memory(master.weights);
      master.weights.copy_(parameter);
    }
    master.torch.give_memory();
  }

  // All state is made ahead of the first temporary, which may have its size.
  void update(std::size_t i) override {
    const at::Tensor& parameter = this->parameter(i).tensor;
    if (masters_[i]) {
      give_memory_to(*masters_[i], parameter);
    } else {
      at::Tensor weights = at::empty_like(parameter, parameter.options().dtype(at::kFloat));
      weights.copy_(parameter);
      take(i, weights).torch.make_state();
    }
    Master& master = *masters_[i];
    master.weights.mutable_grad() = parameter.grad().to(at::kFloat);
    master.torch.step(this->options());
    master.weights.mutable_grad().reset();
    at::Tensor rounded = parameter;
    rounded.copy_(master.weights);
  }

  void update_on_host(std::size_t i, const HostTensors& part) const override {
    TORCH_CHECK(masters_[i], "stowage: the optimizer has no state yet");
    const at::Tensor& master = piece(part, kMaster);
    masters_[i]->torch.step_on_host(this->options(), master, part.gradient.to(at::kFloat),
                                    this->pieces_of(part));
    at::Tensor rounded = part.weights;
    rounded.copy_(master);
  }
  void count_update_on_host(std::size_t i) override { masters_[i]->torch.count_step(); }

  std::vector<std::optional<Master>> masters_;  // by parameter
};

template <class Kind>
std::unique_ptr<Optimizer> make(const OptimizerSpec& spec, std::vector<NamedTensor> parameters,
                                typename Kind::Options options) {
  if (spec.weight_decay) options.weight_decay(*spec.weight_decay);
  if (spec.master) return std::make_unique<MasterOptimizer<Kind>>(std::move(parameters), options);
  return std::make_unique<TorchOptimizer<Kind>>(std::move(parameters), options);
}

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

double learning_rate(const OptimizerSpec& spec) {
  if (spec.learning_rate != 0) return spec.learning_rate;
  return spec.kind == OptimizerKind::sgd ? kSgdRate : kAdamRate;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                          std::vector<NamedTensor> parameters) {
  const double rate = learning_rate(spec);
  switch (spec.kind) {
    case OptimizerKind::none:
      return nullptr;
    case OptimizerKind::sgd:
      return make<SgdKind>(spec, std::move(parameters),
                           torch::optim::SGDOptions(rate)
                               .momentum(spec.momentum)
                               .dampening(spec.dampening)
                               .nesterov(spec.nesterov));
    case OptimizerKind::adam:
      return make<AdamKind>(spec, std::move(parameters), torch::optim::AdamOptions(rate));
    case OptimizerKind::adamw:
      return make<AdamWKind>(spec, std::move(parameters), torch::optim::AdamWOptions(rate));
  }
  return nullptr;
}

}  // namespace stowage::executor
