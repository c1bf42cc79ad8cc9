// The points that a plan names for saved tensors, as places.
#pragma once

#include "simulator/lowering/movement.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::simulator {

// Fixes the evicts and loads that decisions name, of what group_offloads() made; `auto` leaves them
// open, an evict up to the step's first unpack behind its pack. Errors (bad_input): a release point
// ahead of the pack, a reload point behind the first unpack, a point that is not in the step.
// Cost: O(stays log events + events for each point).
[[nodiscard]] Status place_named_points(const StepIndex& index, const Decisions& decisions,
                                        Movement& movement);

}  // namespace stowage::simulator
