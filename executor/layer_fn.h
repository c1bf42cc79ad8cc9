// What a layer computes, as a function that can be called again.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace stowage {

// A driver may keep a copy and call it again until its step ends, on any thread: what it refers to
// outside of itself lives that long. So it captures what belongs to its caller's stack by value.
using LayerFn = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;
// Of a layer with one output.
using TensorFn = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

}  // namespace stowage
