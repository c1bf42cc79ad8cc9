// Where backward begins.
#pragma once

#include <ATen/core/Tensor.h>

namespace stowage::executor {

// With a gradient it is tensor.backward(gradient), both alive until backward ends; without one the
// tensor is a scalar loss, and its gradient is 1.
struct BackwardRoot {
  at::Tensor tensor;
  at::Tensor gradient;  // undefined, or of the tensor's shape
};

}  // namespace stowage::executor
