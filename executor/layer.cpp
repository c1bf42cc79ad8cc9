#include "executor/layer.h"

#include <ATen/ops/alias.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "executor/step_driver.h"

namespace stowage {

namespace {

using executor::LayerEvent;
using Link = std::shared_ptr<const executor::DriverLink>;

void report(executor::StepDriver* driver, LayerEvent event, const std::string& path) {
  if (driver != nullptr) driver->layer_event(event, path);
}

// Tells the driver that was there in forward, as long as it is, when the gradient passes an
// identity node.
class BoundaryHook final : public torch::autograd::FunctionPreHook {
 public:
  BoundaryHook(Link link, LayerEvent event, std::string path)
      : link_(std::move(link)), event_(event), path_(std::move(path)) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    report(executor::driver_of(link_.get()), event_, path_);
    return grads;
  }

 private:
  Link link_;
  LayerEvent event_;
  std::string path_;
};

// A view of `tensor` whose own autograd node is the layer boundary. A view, not a copy: in-place
// ops on either side stay visible to autograd. Invisible to op observers.
at::Tensor identity(const at::Tensor& tensor) {
  const at::RecordFunctionGuard no_observer(/*is_enabled=*/false);
  return at::alias(tensor);
}

void hook(const at::Tensor& boundary, LayerEvent event, const std::string& path) {
  Link link = executor::driver_link();
  if (link == nullptr) return;
  if (const auto node = boundary.grad_fn()) {
    node->add_pre_hook(std::make_unique<BoundaryHook>(std::move(link), event, path));
  }
}

}  // namespace

at::Tensor layer(const std::string& path, const LayerFn& fn, std::vector<at::Tensor> inputs) {
  bool end_hooked = false;
  for (at::Tensor& input : inputs) {
    if (!input.defined() || !input.requires_grad()) continue;
    input = identity(input);
    if (!end_hooked) hook(input, LayerEvent::backward_end, path);
    end_hooked = true;
  }
  report(executor::driver(), LayerEvent::forward_begin, path);
  at::Tensor output = fn(inputs);
  inputs.clear();
  report(executor::driver(), LayerEvent::forward_end, path);
  if (!output.defined() || !output.requires_grad()) return output;
  output = identity(output);
  hook(output, LayerEvent::backward_begin, path);
  return output;
}

}  // namespace stowage
