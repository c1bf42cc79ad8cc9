// What the caching allocator makes of a schedule: the allocations ahead of the step as recorded
// (Trace::setup), then period after period of the planned step until the allocator is in a state
// that it was in before. The first period does what the setup says of the first step besides. The
// peaks are those of the periods that repeat in the end.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/schedule.h"
#include "simulator/trace_index.h"

namespace stowage::simulator {

struct AllocatorReplay {
  Bytes peak_active = 0;
  Bytes peak_reserved = 0;
  std::int32_t periods = 0;  // that were replayed
  // Times that memory is taken from the driver behind the first period, in all of the others; once
  // steady, none is taken any more.
  std::int64_t later_segments = 0;
  bool is_steady = false;      // the state repeated; else the peaks are those of the last period
  bool is_complete = true;     // what a period frees is what the one before left, and every storage
                               // that lasts is in the setup; else the gaps were filled in
  bool out_of_memory = false;  // only with a limit; the peaks are those until then
};

inline constexpr std::int32_t kMostPeriods = 8;

// The allocator's counters over the last period that was replayed: after each event, the
// instructions there included. What AllocatorCurve of the trace says of the recorded step.
struct AllocatorTrail {
  std::vector<Bytes> active;
  std::vector<Bytes> reserved;
};

// Can be asked of traces with a setup. `limit`: the most that may be reserved, -1 = none.
// Cost: O((setup + periods * allocations) log free blocks).
[[nodiscard]] AllocatorReplay replay_allocator(const TraceIndex& index, const Schedule& schedule,
                                               Bytes limit = -1, AllocatorTrail* trail = nullptr);

}  // namespace stowage::simulator
