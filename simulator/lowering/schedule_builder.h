// From "what moves and where it leaves and returns" to a Schedule. Every schedule that Stowage
// makes comes out of build_schedule(): it is the one place that orders instructions, adds those
// that follow from the others (stores, awaits, evictions of reloads), and lays out the host arena.
#pragma once

#include <vector>

#include "simulator/lowering/movement.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Tenants: saved tensors in order of offloads, then parameters in order of storages. Stays: the
// made ones, in order of offloads; those of reloads, in order; those of parameters, in order of
// their awaits. At one place: stores, evictions, loads, awaits, so that bytes are given up before
// others are taken; among equals in order of stays. Precondition (asserted): anchors exist at all
// places, a release is behind its offload's store, a start_reload behind the release and not behind
// the await; a parameter's stay is as parameter_stays.h says. Cost: O(events + moved log moved).
[[nodiscard]] Schedule build_schedule(const StepIndex& index, Movement movement);

}  // namespace stowage::simulator
