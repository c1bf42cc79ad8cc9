#include "executor/layer_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

#include "executor/held.h"

namespace stowage::executor {

namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

}  // namespace

class LayerGradients::State : public std::enable_shared_from_this<State> {
 public:
  enum class StepPart : std::uint8_t { none, forward, backward };

  explicit State(Device& device) : device_(device) {}

  void enter(StepPart part) { part_ = part; }
  [[nodiscard]] StepPart part() const { return part_; }
  void begin();
  at::Tensor start(const at::Tensor& tensor);
  at::Tensor attribute(const std::string& name, const at::Tensor& tensor, const at::Tensor& factor);
  // Of row `row` of that step. On any thread.
  void arrive(std::uint64_t step, std::size_t row, const at::Tensor& gradient);
  void check_arrived() const;
  void drop() {
    rows_.clear();
    starts_.clear();
  }
  [[nodiscard]] std::vector<NamedTensor> results() const;

 private:
  // A result's memory, used again in each step.
  struct HostResult {
    HostArena memory;
    at::Tensor tensor;
  };

  struct Attributed {
    std::string name;
    Held activation;
    Held gradient;
    std::shared_ptr<Node> node;  // until backward is over: of a leaf nobody else holds it
    bool has_arrived = false;
  };

  void gather();
  at::Tensor& result_of(std::size_t row, const at::Tensor& like);

  Device& device_;
  std::atomic<StepPart> part_ = StepPart::none;
  std::uint64_t step_ = 0;
  std::vector<Attributed> rows_;
  std::vector<std::shared_ptr<Node>> starts_;  // nobody else holds them until the graph does
  std::mutex mutex_;                           // backward over several devices has a thread each
  std::size_t arrived_ = 0;
  std::vector<std::string> names_;
  std::vector<HostResult> results_;
};

namespace {

// A leaf keeps no gradient.
class NoGradientHook final : public torch::autograd::FunctionPreHook {
 public:
  variable_list operator()(const variable_list& gradients) override {
    return variable_list(gradients.size());
  }
};

// Ahead of the node that runs when a tensor's gradient is complete.
template <class State>
class ArrivalHook final : public torch::autograd::FunctionPreHook {
 public:
  ArrivalHook(std::shared_ptr<State> state, std::uint64_t step, std::size_t row,
              std::size_t gradient, bool is_leaf)
      : state_(std::move(state)), step_(step), row_(row), gradient_(gradient), is_leaf_(is_leaf) {}

  variable_list operator()(const variable_list& gradients) override {
    state_->arrive(step_, row_, gradients.at(gradient_));
    // The leaf was made for its gradient to come here; it keeps none.
    return is_leaf_ ? variable_list(gradients.size()) : gradients;
  }

 private:
  std::shared_ptr<State> state_;
  std::uint64_t step_;
  std::size_t row_;
  std::size_t gradient_;
  bool is_leaf_;
};

}  // namespace

void LayerGradients::State::begin() {
  ++step_;
  drop();
  names_.clear();  // of the step before: one that attributes nothing has no results
  arrived_ = 0;
  part_ = StepPart::forward;
}

at::Tensor LayerGradients::State::start(const at::Tensor& tensor) {
  if (part_ != StepPart::forward || !tensor.defined() || !tensor.is_floating_point() ||
      tensor.requires_grad()) {
    return tensor;
  }
  at::Tensor leaf = tensor.detach().requires_grad_();
  starts_.push_back(torch::autograd::impl::gradient_edge(leaf).function);
  starts_.back()->add_pre_hook(std::make_unique<NoGradientHook>());
  return leaf;
}

at::Tensor LayerGradients::State::attribute(const std::string& name, const at::Tensor& tensor,
                                            const at::Tensor& factor) {
  const StepPart part = part_;
  if (part == StepPart::none || !at::GradMode::is_enabled()) return tensor;
  if (!tensor.defined() || !tensor.is_floating_point()) return tensor;
  const bool is_leaf = !tensor.requires_grad();
  at::Tensor attributed = is_leaf ? tensor.detach().requires_grad_() : tensor;
  Held activation = hold(factor.defined() ? factor : attributed);
  if (part == StepPart::backward) return attributed;
  torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(attributed);
  // Ahead of those that are there: a leaf's hands on nothing.
  auto& hooks = edge.function->pre_hooks();
  hooks.insert(hooks.begin(), std::make_unique<ArrivalHook<State>>(
                                  shared_from_this(), step_, rows_.size(),
                                  static_cast<std::size_t>(edge.input_nr), is_leaf));
  rows_.push_back({name, std::move(activation), {}, std::move(edge.function)});
  return attributed;
}

void LayerGradients::State::arrive(std::uint64_t step, std::size_t row,
                                   const at::Tensor& gradient) {
  const std::lock_guard lock(mutex_);
  if (step != step_ || row >= rows_.size() || rows_[row].has_arrived || !gradient.defined()) return;
  rows_[row].has_arrived = true;
  const at::NoGradGuard no_graph;
  // A copy, since autograd adds to a gradient in place where nobody else has its bytes: whether
  // somebody has them would be up to the plan.
  rows_[row].gradient = hold(gradient.clone());
  if (++arrived_ == rows_.size()) gather();
}

void LayerGradients::State::check_arrived() const {
  for (const Attributed& each : rows_) {
    TORCH_CHECK(each.has_arrived, "no gradient came to '", each.name,
                "': what backward begins with does not depend on it");
  }
}

at::Tensor& LayerGradients::State::result_of(std::size_t row, const at::Tensor& like) {
  if (results_.size() <= row) results_.resize(row + 1);
  HostResult& result = results_[row];
  if (result.tensor.defined() && result.tensor.sizes() == like.sizes() &&
      result.tensor.scalar_type() == like.scalar_type()) {
    return result.tensor;
  }
  if (result.tensor.defined()) device_.synchronize();  // nothing is on its way there
  Result<HostArena> memory = device_.host_arena(static_cast<Bytes>(like.nbytes()));
  TORCH_CHECK(memory.ok(), memory.ok() ? std::string() : memory.error().text());
  result.memory = std::move(memory).value();
  result.tensor = at::from_blob(result.memory.data(), like.sizes(),
                                at::TensorOptions(at::kCPU).dtype(like.scalar_type()));
  return result.tensor;
}

void LayerGradients::State::gather() {
  const at::NoGradGuard no_graph;
  names_.clear();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    Attributed& each = rows_[row];
    names_.push_back(each.name);
    const at::Tensor product = at::mul(each.gradient.get(), each.activation.get());
    each.gradient.reset();
    each.activation.reset();
    result_of(row, product).copy_(product, /*non_blocking=*/true);
  }
  results_.resize(names_.size());
}

std::vector<NamedTensor> LayerGradients::State::results() const {
  std::vector<NamedTensor> all;
  for (std::size_t row = 0; row < names_.size(); ++row) {
    all.push_back({names_[row], results_[row].tensor});
  }
  return all;
}

LayerGradients::LayerGradients(Device& device) : state_(std::make_shared<State>(device)) {}

LayerGradients::~LayerGradients() {
  state_->drop();  // hooks of its nodes share the state
}

void LayerGradients::begin() {
  state_->begin();
}

at::Tensor LayerGradients::start(const at::Tensor& tensor) {
  return state_->start(tensor);
}

at::Tensor LayerGradients::attribute(const std::string& name, const at::Tensor& tensor,
                                     const at::Tensor& factor) {
  return state_->attribute(name, tensor, factor);
}

void LayerGradients::end_forward() {
  state_->enter(State::StepPart::backward);
}

void LayerGradients::end_backward() {
  state_->enter(State::StepPart::none);
  state_->check_arrived();
  state_->drop();
}

void LayerGradients::abort() {
  state_->enter(State::StepPart::none);
  state_->drop();
}

bool LayerGradients::is_in_forward() const {
  return state_->part() == State::StepPart::forward;
}

std::vector<NamedTensor> LayerGradients::results() const {
  return state_->results();
}

}  // namespace stowage::executor
