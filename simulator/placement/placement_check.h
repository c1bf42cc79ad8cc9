// The proof of a placement: that no two allocations that are there at the same time share bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"

namespace stowage::simulator {

// Of a range without enough pages, or with one that is none of the placement's, or at an address
// that is not aligned, `other` is -1.
struct PlacementConflict {
  std::int32_t range = 0;
  std::int32_t other = -1;
  std::int32_t page = -1;  // that both have
};

// Program order says when a range is there (live_ranges.h): what comes later into the same bytes is
// issued behind the last use of what went, which an evict has waited for. Empty: sound. Every pair
// once a page, in order of pages. Cost: O(mapped pages log + pairs that are in a page at once).
[[nodiscard]] std::vector<PlacementConflict> check_placement(const LiveRanges& live,
                                                             const DevicePlacement& placement);

}  // namespace stowage::simulator
