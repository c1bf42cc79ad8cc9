// stowage::hold(): a tensor that user code keeps, as one that autograd saves. Where a step is
// recorded or planned, its driver decides where the bytes lie until get() asks for them: a plan's
// rules for saved tensors apply to it, under the site of the layer that it was held in. Elsewhere
// it stays.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace stowage {

class Held {
 public:
  Held() = default;
  [[nodiscard]] explicit operator bool() const { return state_ != nullptr; }
  // The tensor, without a graph; in a step as often as in the recorded one. Throws c10::Error where
  // somebody wrote it since, where the step is not the planned one, and behind the step where the
  // bytes had left the device. Not of an empty one.
  [[nodiscard]] at::Tensor get() const;
  // What nobody holds any more is gone.
  void reset() { state_.reset(); }

 private:
  friend Held hold(const at::Tensor& tensor);
  struct State;
  std::shared_ptr<State> state_;
};

// The caller lets go of `tensor` and of all views of it, else its bytes stay where they are.
[[nodiscard]] Held hold(const at::Tensor& tensor);

}  // namespace stowage
