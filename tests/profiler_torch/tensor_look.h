// All that can be seen of a tensor, as a value: for "comes back as it left" and "is bitwise that of
// the plain step".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace stowage::testing {

// Everything but the place in memory (modulo the alignment that kernels see).
struct TensorLook {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  at::ScalarType dtype = at::kFloat;
  bool conjugate = false;
  bool negative = false;
  bool zero = false;  // PyTorch's tensor of zeros without memory; has no bits
  std::uintptr_t alignment = 0;
  std::vector<char> bits;  // of the elements, in the order of their indices
  bool operator==(const TensorLook&) const = default;
};

// Of a strided tensor of hand_device(), without an op or an allocation of the device.
[[nodiscard]] TensorLook look_at(const at::Tensor& tensor);

}  // namespace stowage::testing
