#include "executor/reserve_segments.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace stowage::executor {

void reserve_segments(Device& device, const std::vector<Bytes>& buffers) {
  if (device.memory().driver_allocations < 0) return;
  std::vector<at::Tensor> held;
  try {
    for (const Bytes bytes : buffers) held.push_back(device.allocate_buffer(bytes, kOffPlanTag));
  } catch (const c10::OutOfMemoryError&) {
    // The steps find less cached, and take it themselves if there is any.
  }
}

}  // namespace stowage::executor
