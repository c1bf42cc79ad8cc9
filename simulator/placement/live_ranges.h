// What has to lie in device memory at once in a planned step: every allocation of a period with the
// time for which it is there. A function of program order alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/placement/outside_memory.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::simulator {

// Addresses, and so the sizes that count, are multiples of it: kernels are chosen by alignment.
inline constexpr Bytes kPlacementAlignment = 512;

[[nodiscard]] constexpr Bytes placed_bytes(Bytes bytes) {
  return (bytes + kPlacementAlignment - 1) / kPlacementAlignment * kPlacementAlignment;
}

// There from instant `begin` up to instant `end`, not included. Above the period's number of
// instants `end` goes on in the period behind: it is there at the period's begin as well.
struct LiveRange {
  Bytes bytes = 0;  // asked for, > 0
  std::int32_t begin = 0;
  std::int32_t end = 0;
  // What the range ahead of it is in every other period: it is still there when the next period
  // makes it anew (a loop's `loss` until the name is bound again), so there are two places, each
  // taken all the time. `begin` to `end` is while both are there.
  bool is_second = false;
};

// Instant 0 is the period's begin, instant i + 1 comes behind step i of the sequence's period; the
// last one is followed by the first one of the next period.
struct LiveRanges {
  std::int32_t instants = 1;
  std::vector<LiveRange> ranges;
  // The range that a slot of the sequence is; -1: it has no memory. What is carried over into the
  // next period is one range with what it is there.
  std::vector<std::int32_t> of_slot{};
  // By row of the recording's Setup: what the allocator holds besides; -1 for the others.
  std::vector<std::int32_t> of_setup{};
  OutsideBytes outside{};  // there all the time, in no range
};

// Of the period that repeats. Behind those of slots stand ranges of what the allocator holds
// besides (Setup rows of no storage that nothing frees: workspaces). What is outside
// (outside_memory.h) has none. Cost: O(sequence + setup).
[[nodiscard]] LiveRanges live_ranges(const AllocationSequence& sequence, const Trace& trace);

// The same with each second place taken all the time, as a placement needs it. Cost: O(ranges).
[[nodiscard]] LiveRanges taken_ranges(LiveRanges live);

// Whether the range behind it is its second place.
[[nodiscard]] inline bool takes_turns(const LiveRanges& live, std::int32_t range) {
  const auto next = static_cast<std::size_t>(range) + 1;
  return next < live.ranges.size() && live.ranges[next].is_second;
}

// Bytes that are there at each instant, each range rounded up to kPlacementAlignment, with what is
// outside. Cost: O(instants + ranges).
[[nodiscard]] std::vector<Bytes> live_bytes(const LiveRanges& live);

// The same behind each of the period's events, the most while the instructions there come one after
// the other: never fewer than are requested (replay_memory()). `sequence`: what `live` was made of.
// Cost: that of live_bytes() and O(events).
[[nodiscard]] std::vector<Bytes> live_bytes_by_event(const LiveRanges& live,
                                                     const AllocationSequence& sequence,
                                                     std::size_t events);

}  // namespace stowage::simulator
