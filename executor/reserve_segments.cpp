#include "executor/reserve_segments.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace stowage::executor {

namespace {

constexpr int kMostLooks = 4;

bool is_as_foreseen(const simulator::ObservedAllocator& observed,
                    const std::vector<simulator::CachingAllocator::Piece>& layout) {
  return std::equal(observed.blocks.begin(), observed.blocks.end(), layout.begin(), layout.end(),
                    [](const simulator::ObservedBlock& a, const auto& b) {
                      return a.address == b.address && a.size == b.size &&
                             a.allocated == b.allocated;
                    });
}

}  // namespace

void reserve_segments(Device& device, const std::vector<Bytes>& buffers) {
  if (device.memory().driver_allocations < 0) return;
  std::vector<at::Tensor> held;
  try {
    for (const Bytes bytes : buffers) held.push_back(device.allocate_buffer(bytes, kOffPlanTag));
  } catch (const c10::OutOfMemoryError&) {
    // The steps find less cached, and take it themselves if there is any.
  }
}

std::string reserve_for_later_steps(Device& device, const simulator::AllocatorOutlook& outlook,
                                    std::int64_t first_serial) {
  std::optional<simulator::ObservedAllocator> observed = device.observed_allocator();
  if (!observed) return "not known: the device does not tell its allocator's blocks";
  std::string described;
  for (int looks = 0; looks < kMostLooks && observed; ++looks) {
    const simulator::Outlook seen = outlook.look(*observed, first_serial);
    described += looks == 0 ? "" : "; placed otherwise than foreseen, so again: ";
    described += (seen.known ? "" : "not known: ") + seen.described;
    if (seen.buffers.empty()) return described;
    reserve_segments(device, seen.buffers);
    observed = device.observed_allocator();
    if (observed && is_as_foreseen(*observed, seen.layout)) return described;
  }
  return described;
}

}  // namespace stowage::executor
