#include "executor/reserve_segments.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "simulator/caching_allocator.h"

namespace stowage::executor {

void reserve_segments(Device& device, const std::vector<Bytes>& segments) {
  if (device.memory().driver_allocations < 0) return;
  std::vector<at::Tensor> held;
  try {
    for (const Bytes segment : segments) {
      const Bytes bytes = simulator::CachingAllocator::request_of_segment(segment);
      const std::int64_t before = device.memory().driver_allocations;
      while (device.memory().driver_allocations == before) {
        held.push_back(device.allocate_buffer(bytes, kOffPlanTag));
      }
    }
  } catch (const c10::OutOfMemoryError&) {
    // Cached memory is what the steps would find anyway.
  }
}

}  // namespace stowage::executor
