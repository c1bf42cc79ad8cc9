// Hands a tensor to stowage::layer() without keeping it.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace stowage::executor {

// The inputs {tensor}; `tensor` is empty afterwards. Braces would not do: the array behind an
// initializer list keeps a reference until the end of the full expression, so beyond the layer.
[[nodiscard]] inline std::vector<at::Tensor> consume(at::Tensor& tensor) {
  std::vector<at::Tensor> inputs;
  inputs.push_back(std::move(tensor));
  return inputs;
}

}  // namespace stowage::executor
