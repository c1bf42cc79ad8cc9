// A trace of a small step, made by hand,.
#pragma once

#include "traces/trace.h"

namespace stowage::testing {

// `layers` equal layers (at least 1) and a loss, on the CPU, with these storages of device 0:
//   per layer  parameter 400,000 B (older than the step), gradient 400,000 B (the last step's is
//              freed by zero_grad, this step's stays), activation 2,000,000 B (saved as
//              `layers.I#0`, released by the model after the layer's second op), output 500,000 B
//   input 200,000 B (older than the step), loss 8,000 B
//   backward   2,000,000 B of gradient passed from layer to layer
// The peak is in the backward op of the last layer, which allocates its 2,000,000 B. All layers'
// activations are alive there; all but the last layer's could be away.
// Forward ops take 1 ms, backward ops 2 ms; the link does 8 GB/s each way.
[[nodiscard]] Trace small_trace(int layers = 3);

// What the peak comes to, by the list above.
[[nodiscard]] Bytes small_trace_peak(int layers);

}  // namespace stowage::testing
