// Static layout of the pinned host arena: every tenant without a home of its own gets a byte range
// for the time in which its slot is taken; slots that are never taken at the same time may share
// bytes.
//
// Online best fit by start of use, free blocks merged with their neighbours: O(n log n). Fragments
// cost some bytes against the optimum (dynamic storage allocation is NP-hard); where nothing is
// given back while slots are still being taken, as in one forward and one backward, it is exact.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/units.h"

namespace stowage::simulator {

// What a slot of so many bytes takes: the next multiple of kHostSlotAlignment.
[[nodiscard]] Bytes slot_bytes(Bytes bytes);

// Taken from `first` to `last`, both included, in positions of the schedule's own order.
struct SlotRequest {
  Bytes bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct ArenaLayout {
  std::vector<Bytes> offset;  // one per request, a multiple of kHostSlotAlignment; 0 for 0 bytes
  Bytes bytes = 0;            // size of the arena, a multiple of kHostSlotAlignment
};

[[nodiscard]] ArenaLayout lay_out(const std::vector<SlotRequest>& requests);

}  // namespace stowage::simulator
