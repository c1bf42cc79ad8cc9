#include "executor/backward_updates.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include "executor/step_driver.h"

namespace stowage::executor {

BackwardUpdates::BackwardUpdates(Optimizer& optimizer, const std::vector<NamedTensor>& parameters)
    : optimizer_(optimizer) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& each : parameters) {
    row_of_.emplace(each.tensor.unsafeGetTensorImpl(), parameters_.size());
    parameters_.push_back({each});
    tensors.push_back(each.tensor);
  }
  hooks_.install(tensors, [this](const at::Tensor& parameter) { arrived(parameter); });
}

void BackwardUpdates::open() {
  TORCH_CHECK(!has_run_,
              "stowage: a step with updates in backward has one backward: it cannot be divided");
  has_run_ = is_open_ = true;
  for (Parameter& each : parameters_) each.is_updated = each.is_elsewhere = false;
}

void BackwardUpdates::close() {
  is_open_ = false;
  for (const Parameter& each : parameters_) {
    TORCH_CHECK(each.is_elsewhere || !each.named.tensor.grad().defined(),
                "stowage: ", each.named.name,
                " has a gradient that was not seen to arrive (somebody else's hook is in the way), "
                "so it is not updated: leave update=backward out");
  }
}

void BackwardUpdates::arrived(const at::Tensor& gradient_of) {
  const std::size_t row = row_of_.at(gradient_of.unsafeGetTensorImpl());
  Parameter& parameter = parameters_[row];
  const std::string& name = parameter.named.name;
  TORCH_CHECK(is_open_, "stowage: a gradient of ", name,
              " arrives ahead of the step's backward, and updates are in backward: leave "
              "update=backward out, or the micro-batches");
  TORCH_CHECK(!parameter.is_updated, "stowage: a second gradient of ", name,
              " arrives in one backward, and it was updated by the first one: leave "
              "update=backward out");
  parameter.is_updated = true;
  StepDriver* const current = driver();
  parameter.is_elsewhere = current != nullptr && current->updates_elsewhere(gradient_of);
  if (parameter.is_elsewhere) return;  // it raises the version when it begins
  // PyTorch's SGD writes without a version.
  torch::autograd::impl::bump_version(gradient_of);
  optimizer_.step_of(row);
  gradient_of.mutable_grad().reset();
}

}  // namespace stowage::executor
