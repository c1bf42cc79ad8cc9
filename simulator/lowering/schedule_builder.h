// From stays with their places to a Schedule. Every schedule that Stowage makes comes out of
// build_schedule(), or is made of such a one for the step without its update (skipped_update.h): it
// is the one place that orders instructions and lays out the host arena.
#pragma once

#include "simulator/lowering/movement.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Stays: those of each kind together; made ones first, in order of tenants; then the loaded ones,
// in order of awaits, then of tenants. At one place: stores, evictions, loads, awaits, so that
// bytes are given up before others are taken; among equals in order of stays. Precondition
// (asserted): every stay is placed, as movement.h says, at anchors. Cost: O(events + stays log
// stays).
[[nodiscard]] Schedule build_schedule(const StepIndex& index, Movement movement);

}  // namespace stowage::simulator
