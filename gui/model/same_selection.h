// What was selected while the plan was another one, in the replay that is shown now.
#pragma once

#include <optional>

#include "gui/model/simulated.h"
#include "gui/model/view_state.h"

namespace stowage::gui {

// Of the step: the same row of the recording. Of the replay (transfer, stall, update): that of the
// same bytes, in the same stay of theirs and the same direction; none when they do not move so any
// more. Both must be of one file. Cost: O(tenants + stays + rows of its kind).
[[nodiscard]] Selection same_in(const Simulated& now, const Simulated& before,
                                const Selection& selection);

// When an event, a transfer, a stall or an update is, or begins, in the planned step.
[[nodiscard]] std::optional<Nanoseconds> time_of(const Simulated& simulated,
                                                 const Selection& selection);

}  // namespace stowage::gui
