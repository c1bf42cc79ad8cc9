// What the gradient of a step's loss will be scaled by, declared ahead of its forward: a tail that
// runs in parts (executor/tail.h) has its backwards inside of forward.
#pragma once

#include <ATen/core/Tensor.h>

namespace stowage::executor {

// Declares the scale for the calling thread; scopes do not nest.
class LossScale {
 public:
  // `scale`: a scalar on the device, or undefined, which declares nothing.
  explicit LossScale(at::Tensor scale);
  ~LossScale();
  LossScale(const LossScale&) = delete;
  LossScale& operator=(const LossScale&) = delete;

  // The thread's; null where none is declared.
  [[nodiscard]] static LossScale* declared();
  // Of a root's gradient, in its dtype; a root without one has the scale itself as its gradient.
  [[nodiscard]] at::Tensor of(const at::Tensor& tensor, const at::Tensor& gradient) const;
  // What parts have accumulated has the scale by now, so the root's gradient stays as it is.
  void take_by_parts() { is_taken_ = true; }
  [[nodiscard]] bool is_taken() const { return is_taken_; }

 private:
  at::Tensor scale_;
  bool is_taken_ = false;
};

}  // namespace stowage::executor
