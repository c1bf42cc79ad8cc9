// MemoryLayout: where a planned step finds what it allocates, as an executor needs it: every
// allocation of a period in program order, each with an address range of its own in one region
// whose pages are mapped ahead of the first period.
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

// One allocation of the period.
struct HandOut {
  EventId event;  // at which, or ahead of which, as in an AllocationSequence
  std::int32_t range = 0;
};

struct MemoryLayout {
  // What the period itself allocates. What is older than every period (parameters, inputs, state of
  // the optimizer, workspaces) is not in it.
  LiveRanges live;
  DevicePlacement placement;
  std::vector<HandOut> hand_outs;  // in program order; their events never go back
  std::vector<Bytes> address;      // by range: of its first byte, from the region's begin
  Bytes region_bytes = 0;          // of addresses; whole pages

  [[nodiscard]] Bytes bytes(std::int32_t range) const {
    return live.ranges[static_cast<std::size_t>(range)].bytes;
  }
};

// Systems bound how many mappings a process may have, and each takes time to make.
struct PageChoice {
  Bytes smallest = 0;     // a multiple of kPlacementAlignment
  std::int64_t most = 0;  // mapped pages
};
// The smallest page of `smallest` times a power of two of which all ranges have `most` or fewer, as
// far as larger ones are fewer.
[[nodiscard]] Bytes page_bytes(const LiveRanges& live, const PageChoice& choice);

// Cost: that of allocation_sequence() and place().
[[nodiscard]] MemoryLayout memory_layout(const StepIndex& index, const Schedule& schedule,
                                         const PageChoice& choice);

// Page by page as few mappings as can be: pages that follow each other both in the memory and in
// the region are one.
struct Mapping {
  Bytes address = 0;  // from the region's begin
  Bytes offset = 0;   // in the memory of the pages
  Bytes bytes = 0;
};
[[nodiscard]] std::vector<Mapping> mappings(const MemoryLayout& layout);

}  // namespace stowage::simulator
