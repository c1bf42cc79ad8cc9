// What the caching allocator makes of a schedule: the allocations ahead of the step as recorded
// (Trace::setup), then period after period of the planned step until the allocator is in a state
// that it was in before. The first period does what the setup says of the first step besides. The
// peaks are those of the periods that repeat in the end.
//
// Segments that only a later period would take from the driver (the gradients of the step before
// are not there in the first one) are taken ahead of the first period, where a plan is applied
// (behind what it frees then, ahead of what its first period begins with): one after the other,
// request_of_segment() bytes are asked for, again and again, until a segment is taken; then all of
// that is freed. Tried are nothing, those segments, and one large segment. A try counts when no
// later period takes any and at most 5 % more is reserved than without; first choice is one that is
// steady, or that takes none for 100 periods and none for 16 in each of eight other orders of
// addresses. Then it is done, and executor/reserve_segments.h does the same to the real allocator.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/allocator/allocator_periods.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

struct AllocatorReplay {
  Bytes peak_active = 0;
  Bytes peak_reserved = 0;
  std::int32_t periods = 0;  // that were replayed
  // Sizes of the segments to take ahead of the first period, and of the buffers that take them.
  std::vector<Bytes> segments_ahead;
  std::vector<Bytes> buffers_ahead;
  // Of those that are all the same taken behind it, in all other periods; once steady, none is
  // taken any more. A plan under which the allocator wanders for ever may take one more some day.
  std::vector<Bytes> later_segments;
  // The state repeated; else the peaks are those behind the first period, and the active one is the
  // largest of a hundred periods and of other orders of addresses besides.
  bool is_steady = false;
  bool is_complete = true;     // what a period frees is what the one before left, and every storage
                               // that lasts is in the setup; else the gaps were filled in
  bool out_of_memory = false;  // only with a limit; the peaks are those until then
};

inline constexpr std::int32_t kMostPeriods = 16;  // so many steps are exact without is_steady

// Can be asked of traces with a setup. `limit`: the most that may be reserved, -1 = none. `trail`
// gets the last period that was replayed.
// Cost: O((setup + periods * allocations) * CachingAllocator), a few times over where there are
// later segments.
[[nodiscard]] AllocatorReplay replay_allocator(const StepIndex& index, const Schedule& schedule,
                                               Bytes limit = -1, AllocatorTrail* trail = nullptr);

// The same with nothing taken ahead and no other order of addresses: what a first look at many
// schedules can afford. Its active peak is never above that of replay_allocator() where that takes
// nothing ahead either.
[[nodiscard]] AllocatorReplay replay_allocator_shortly(const StepIndex& index,
                                                       const Schedule& schedule);

}  // namespace stowage::simulator
