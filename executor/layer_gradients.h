// LayerGradients: gradient x activation of tensors in the middle of a step (docs/executor.md,
// docs/decisions/0040-attributions-are-a-step.md):
//
//   forward     each tensor that is attributed is held
//   backward    so is a copy of its gradient, when that is complete; with the last one,
//               tensor by tensor in the order of forward, the product goes to the host
//
// It runs with and without a plan.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/model.h"

namespace stowage::executor {

class LayerGradients {
 public:
  // `device` outlives it.
  explicit LayerGradients(Device& device);
  ~LayerGradients();
  LayerGradients(const LayerGradients&) = delete;
  LayerGradients& operator=(const LayerGradients&) = delete;

  // A step's forward begins.
  void begin();
  // Within forward: takes the place of a tensor that the graph is to begin at, a floating-point one
  // that needs no gradient so far; others are returned as they are. It gets no gradient. Without
  // any the graph begins behind the first tensors that are attributed, which then do not depend on
  // each other.
  [[nodiscard]] at::Tensor start(const at::Tensor& tensor);
  // Within forward, once a tensor; its place is to be taken by what is returned, ahead of any use.
  // A tensor that is no floating-point number is returned as it is. In backward, where a layer runs
  // again, it saves what it saved in forward, and that is all; outside of a step nothing.
  // `factor`, if it is defined, is what the gradient is multiplied by in the tensor's place.
  [[nodiscard]] at::Tensor attribute(const std::string& name, const at::Tensor& tensor,
                                     const at::Tensor& factor = {});
  void end_forward();
  // Throws c10::Error where the gradient of a tensor did not come: what backward began with does
  // not depend on it.
  void end_backward();
  // In the place of all that follows, behind an exception.
  void abort();
  [[nodiscard]] bool is_in_forward() const;

  // Of the last step, in the order of forward: dense CPU tensors over host memory of its own, valid
  // until the next step; written when the device was waited for.
  [[nodiscard]] std::vector<NamedTensor> results() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with hooks of the graph
};

}  // namespace stowage::executor
