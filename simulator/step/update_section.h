// The part of a step that an optimizer may skip: it found an overflow and updates nothing.
#pragma once

#include <vector>

#include "simulator/step/step_template.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// From the first event around a parameter's update to the last one; of a recording without such
// events all of the optimizer's phase. Neither step_begin nor step_end. What else the optimizer's
// phase holds (unscaling and clipping ahead of the updates, averaging behind them) is done in every
// step.
struct UpdateSection {
  EventId first;  // [first, end)
  EventId end;
  std::vector<EventId> frees;  // behind it, of what was made in it; in order

  // A step that skips the update does not have this event.
  [[nodiscard]] bool has(EventId event) const;
};

// Errors (bad_input): no optimizer's phase; updates in several phases, or in another one, which are
// no section; packs or unpacks in it. Cost: O(events + storages).
[[nodiscard]] Result<UpdateSection> update_section(const Trace& trace);

// Puts nothing in the place of the recorded section.
[[nodiscard]] StepTemplate leave_out(const UpdateSection& section);

}  // namespace stowage::simulator
