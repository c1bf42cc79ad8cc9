// A tensor over the same bytes whose release can be seen: for saved tensors that stay on the device
// while everything else leaves.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace stowage::profiler {

// Equal to `tensor` in every respect but with a storage of its own, which keeps the original alive
// and calls `on_release` once when its last reference dies. Precondition: executor::is_plain().
[[nodiscard]] at::Tensor alias_with_release(const at::Tensor& tensor,
                                            std::function<void()> on_release);

}  // namespace stowage::profiler
