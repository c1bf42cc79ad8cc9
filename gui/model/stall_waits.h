// What each stall waits for, and which stalls are one to the eye: they follow each other, compute
// does nothing between them, and all wait for the same lane.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/model/view_state.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"

namespace stowage::gui {

struct StallWait {
  std::int32_t stall = -1;  // row of ReplayResult::stalls
  // Row of ReplayDetail::transfers, of an update of ReplayDetail::host_updates; -1: not in there.
  std::int32_t copy = -1;
  bool is_store = false;   // the copy out
  bool is_update = false;  // on the host
  TimeRange at;            // the stall
  TimeRange of;            // the copy, or the update
  std::int32_t group = -1;
};

struct StallGroup {
  std::int32_t first = 0;  // of the waits
  std::int32_t count = 0;
  std::int32_t longest = -1;  // row of ReplayResult::stalls; of equal ones the first
  TimeRange at;               // from the first one's begin to the last one's end
  Nanoseconds duration = 0;   // of the stalls alone
};

struct StallWaits {
  std::vector<StallWait> waits;  // in order of time
  std::vector<StallGroup> groups;
  std::vector<std::int32_t> wait_of;  // by row of ReplayResult::stalls

  // Precondition: a row of ReplayResult::stalls.
  [[nodiscard]] const StallGroup& group_of(std::int32_t stall) const;
  // Stalls within [begin, end). O(waits).
  [[nodiscard]] Nanoseconds covered(const TimeRange& range) const;
};

// All of one replay. Cost: O(stalls log stalls + transfers).
[[nodiscard]] StallWaits stall_waits(const simulator::StepIndex& index,
                                     const simulator::ReplayResult& result,
                                     const simulator::ReplayDetail& detail);

}  // namespace stowage::gui
