#include "executor/one_by_one.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <utility>

#include "executor/device/host_work.h"
#include "executor/step_driver.h"

namespace stowage::executor {

namespace {

// Row of the parameter that this tensor is, their number where it is none.
std::size_t row_of(const std::vector<NamedTensor>& parameters, const at::Tensor& tensor) {
  const auto own =
      std::find_if(parameters.begin(), parameters.end(),
                   [&](const NamedTensor& known) { return known.tensor.is_same(tensor); });
  return static_cast<std::size_t>(own - parameters.begin());
}

// In the same form, which at home it has as well.
at::Tensor on_host(const at::Tensor& tensor) {
  at::Tensor host = at::empty_strided(tensor.sizes(), tensor.strides(),
                                      tensor.options().device(at::kCPU).requires_grad(false));
  return host.copy_(tensor);
}

}  // namespace

OneByOne::OneByOne(std::vector<NamedTensor> parameters)
    : parameters_(std::move(parameters)),
      through_host_(parameters_.size()),
      is_updated_(parameters_.size()) {}

void OneByOne::step() {
  StepDriver* const current = driver();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& tensor = parameters_[i].tensor;
    if (!tensor.grad().defined()) continue;
    if (current == nullptr || !current->updates_elsewhere(tensor)) step_of(i);
  }
}

void OneByOne::step_of(std::size_t parameter) {
  const at::Tensor& tensor = parameters_[parameter].tensor;
  StepDriver* const current = driver();
  if (current != nullptr) current->parameter_update(UpdateEvent::begin, tensor);
  {
    const at::NoGradGuard no_graph;
    through_host_[parameter] ? update_through_host(parameter) : update(parameter);
  }
  is_updated_[parameter] = 1;
  if (current != nullptr) current->parameter_update(UpdateEvent::end, tensor);
}

void OneByOne::step_on_host(std::size_t parameter, const HostTensors& tensors) {
  const at::NoGradGuard no_graph;
  update_on_host(parameter, tensors);
  is_updated_[parameter] = 1;
}

void OneByOne::update_through_host(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& each : parameters) {
    const std::size_t own = row_of(parameters_, each);
    if (own < parameters_.size()) through_host_[own] = true;
  }
}

void OneByOne::update_through_host(std::size_t parameter) {
  prepare_state(parameter);
  std::vector<NamedTensor> state;
  add_state(parameter, state);
  at::Tensor weights = parameters_[parameter].tensor;
  const HostWorkGuard host_work;
  HostTensors tensors{on_host(weights), on_host(weights.grad()), {}};
  for (const NamedTensor& each : state) tensors.state.push_back({each.name, on_host(each.tensor)});
  update_on_host(parameter, tensors);
  weights.copy_(tensors.weights);
  for (std::size_t i = 0; i < state.size(); ++i) state[i].tensor.copy_(tensors.state[i].tensor);
}

std::vector<NamedTensor> OneByOne::state() const {
  std::vector<NamedTensor> state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) add_state(i, state);
  return state;
}

std::vector<NamedTensor> OneByOne::written_state() const {
  std::vector<NamedTensor> written;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (is_updated_[i] != 0) add_state(i, written);
  }
  return written;
}

void OneByOne::make_state(const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& each : parameters) {
    const std::size_t own = row_of(parameters_, each.tensor);
    if (own < parameters_.size()) make_state_of(own);
  }
}

}  // namespace stowage::executor
