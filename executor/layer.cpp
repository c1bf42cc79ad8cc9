#include "executor/layer.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "executor/step_driver.h"

namespace stowage {

namespace {

using executor::LayerEvent;
using torch::autograd::Node;

using Link = std::shared_ptr<const executor::DriverLink>;

void report(executor::StepDriver* driver, LayerEvent event, const std::string& path) {
  if (driver != nullptr) driver->layer_event(event, path);
}

// Tells the driver that was there in forward, as long as it is, when a gradient comes to the first
// of the nodes that share the boundary, in each backward.
class Boundary {
 public:
  Boundary(Link link, LayerEvent event, const std::string& path)
      : link_(std::move(link)), event_(event), path_(path) {}

  void passed() {
    // A graph that was retained is run by further backwards, each a task of its own.
    const int task = torch::autograd::get_current_graph_task_id();
    if (last_task_.exchange(task) == task) return;
    report(executor::driver_of(link_.get()), event_, path_);
  }
  // Nobody hears it any more.
  [[nodiscard]] bool is_over() const { return executor::driver_of(link_.get()) == nullptr; }

 private:
  Link link_;
  LayerEvent event_;
  std::string path_;
  std::atomic<int> last_task_{-1};  // on a GPU each device's thread runs nodes
};

class BoundaryHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit BoundaryHook(std::shared_ptr<Boundary> boundary) : boundary_(std::move(boundary)) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    boundary_->passed();
    return grads;
  }
  [[nodiscard]] bool is_over() const { return boundary_->is_over(); }

 private:
  std::shared_ptr<Boundary> boundary_;
};

// Null without a driver.
std::shared_ptr<Boundary> boundary_of(LayerEvent event, const std::string& path) {
  Link link = executor::driver_link();
  if (link == nullptr) return nullptr;
  return std::make_shared<Boundary>(std::move(link), event, path);
}

bool is_over(const torch::autograd::FunctionPreHook& hook) {
  const auto* const boundary = dynamic_cast<const BoundaryHook*>(&hook);
  return boundary != nullptr && boundary->is_over();
}

// Hooks the node that runs when the gradient of `tensor` is complete. In backward, what begins
// later in forward ends earlier, and what ends later there begins earlier: the hook goes to the
// front.
std::shared_ptr<Node> hook(const at::Tensor& tensor, const std::shared_ptr<Boundary>& boundary) {
  if (boundary == nullptr) return nullptr;
  std::shared_ptr<Node> node = torch::autograd::impl::gradient_edge(tensor).function;
  auto& hooks = node->pre_hooks();
  // A node that outlives its step (of a leaf, or of a graph that is kept) would gather them.
  while (!hooks.empty() && is_over(*hooks.front())) hooks.erase(hooks.begin());
  hooks.insert(hooks.begin(), std::make_unique<BoundaryHook>(boundary));
  return node;
}

bool needs_gradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

// `run` is what calls fn.
template <class Run>
std::vector<at::Tensor> between_boundaries(const std::string& path, std::vector<at::Tensor> inputs,
                                           const Run& run) {
  executor::tell_layer_tensors(executor::LayerSide::inputs, path, inputs);
  const auto first = std::find_if(inputs.begin(), inputs.end(), needs_gradient);
  // Held until fn has used the input: a leaf's node is its graph's.
  const std::shared_ptr<Node> end =
      first == inputs.end() ? nullptr : hook(*first, boundary_of(LayerEvent::backward_end, path));
  std::vector<at::Tensor> outputs = run(std::move(inputs));
  inputs.clear();
  executor::tell_layer_tensors(executor::LayerSide::outputs, path, outputs);
  const std::shared_ptr<Boundary> begin = boundary_of(LayerEvent::backward_begin, path);
  for (const at::Tensor& output : outputs) {
    if (needs_gradient(output)) hook(output, begin);
  }
  return outputs;
}

}  // namespace

std::vector<at::Tensor> layer(const std::string& path, const LayerFn& fn,
                              std::vector<at::Tensor> inputs) {
  return between_boundaries(path, std::move(inputs), [&](std::vector<at::Tensor>&& given) {
    executor::StepDriver* const driver = executor::driver();
    return driver != nullptr ? driver->run_layer(path, fn, std::move(given)) : fn(given);
  });
}

std::vector<at::Tensor> layer_once(const std::string& path, const LayerFn& fn,
                                   std::vector<at::Tensor> inputs) {
  return between_boundaries(path, std::move(inputs), [&](std::vector<at::Tensor>&& given) {
    executor::StepDriver* const driver = executor::driver();
    // That of no particular driver: a scope, whose callable nobody has.
    return driver != nullptr ? driver->StepDriver::run_layer(path, fn, std::move(given))
                             : fn(given);
  });
}

at::Tensor layer(const std::string& path, const TensorFn& fn, std::vector<at::Tensor> inputs) {
  const LayerFn one = [fn](const std::vector<at::Tensor>& given) {
    return std::vector<at::Tensor>{fn(given)};
  };
  return std::move(layer(path, one, std::move(inputs)).front());
}

}  // namespace stowage
