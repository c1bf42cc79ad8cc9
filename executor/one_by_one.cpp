#include "executor/one_by_one.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <utility>

#include "executor/device/host_work.h"
#include "executor/host_parts.h"
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

constexpr std::int64_t kPartsAtOnce = 64;  // of a parameter that goes through the host

// In the same form, which at home it has as well; pinned, or a copy takes ten times as long.
at::Tensor on_host(const at::Tensor& tensor) {
  const at::TensorOptions options = tensor.options().device(at::kCPU).requires_grad(false);
  at::Tensor host =
      at::empty_strided(tensor.sizes(), tensor.strides(), options.pinned_memory(tensor.is_cuda()));
  return host.copy_(tensor);
}

HostTensors on_host(const HostTensors& there) {
  HostTensors here{on_host(there.weights), on_host(there.gradient), {}};
  for (const NamedTensor& each : there.state) {
    here.state.push_back({each.name, on_host(each.tensor)});
  }
  return here;
}

// All but the gradient, which no update writes.
void copy_back(const HostTensors& here, const HostTensors& there) {
  there.weights.copy_(here.weights);
  for (std::size_t i = 0; i < here.state.size(); ++i) {
    there.state[i].tensor.copy_(here.state[i].tensor);
  }
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
  host_team_.for_each(HostParts(tensors),
                      [&](const HostTensors& part) { update_on_host(parameter, part); });
  count_update_on_host(parameter);
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
  const at::Tensor& weights = parameters_[parameter].tensor;
  HostTensors all{weights, weights.grad(), {}};
  add_state(parameter, all.state);
  const HostWorkGuard host_work;
  const HostParts parts(all);
  for (std::int64_t begin = 0; begin < parts.count(); begin += kPartsAtOnce) {
    const HostTensors there = parts.parts(begin, std::min(begin + kPartsAtOnce, parts.count()));
    const HostTensors here = on_host(there);
    host_team_.for_each(HostParts(here),
                        [&](const HostTensors& part) { update_on_host(parameter, part); });
    copy_back(here, there);
  }
  count_update_on_host(parameter);
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
