// MemoryLayout: where a planned step finds what it allocates, as an executor needs it: every
// allocation of a period in program order, each with an address range of its own in one region
// whose pages are mapped ahead of the first period; and ranges for what is there all the time.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::simulator {

// One allocation of the step itself.
struct HandOut {
  EventId event;            // at which, or ahead of which, as in an AllocationSequence
  std::int32_t range = -1;  // -1: the device's own allocator serves it (only in a first period)
  Bytes bytes = 0;
  // In a first period: who makes this, which lasts, does not make the next hand-out (what later
  // periods add to a gradient that is kept is in the first one that gradient itself).
  bool is_for_next = false;
};

struct MemoryLayout {
  LiveRanges live;  // of all that PlannedMemory has
  DevicePlacement placement;
  // In program order; their events never go back. Buffers of loads are not among them.
  std::vector<HandOut> hand_outs;
  // Those of a first period, which makes what stays from then on (state of the optimizer,
  // workspaces) and what it needs but once. Empty: it makes nothing of its own.
  std::vector<HandOut> first_hand_outs;
  std::vector<std::int32_t> of_stay;  // by stay: the range of its buffer, -1 = it has none
  std::vector<std::int32_t> lasting;  // ranges of what is there all the time
  std::vector<Bytes> address;         // by range: of its first byte, from the region's begin
  Bytes region_bytes = 0;             // of addresses; whole pages

  [[nodiscard]] Bytes bytes(std::int32_t range) const {
    return live.ranges[static_cast<std::size_t>(range)].bytes;
  }
};

// Whether steps ran in the process ahead of the first period. Then what a first step takes from the
// device's own allocator is there (DDP's buckets) or gone, and no hand-out of the first period.
enum class RanBefore { nothing, steps };

// Cost: that of allocation_sequence() and place().
[[nodiscard]] MemoryLayout memory_layout(const StepIndex& index, const Schedule& schedule,
                                         const PageChoice& choice,
                                         RanBefore ran = RanBefore::nothing);

// Page by page as few mappings as can be: pages that follow each other both in the memory and in
// the region are one.
struct Mapping {
  Bytes address = 0;  // from the region's begin
  Bytes offset = 0;   // in the memory of the pages
  Bytes bytes = 0;
};
// Of the ranges [begin, end). Cost: O(their pages).
[[nodiscard]] std::vector<Mapping> mappings(const MemoryLayout& layout, std::int32_t begin,
                                            std::int32_t end);

}  // namespace stowage::simulator
