// Chooses where stays end and loads start when what makes them leaves it open ("auto"), of any kind
// of tenant.
//
// End: the D2H queue is simulated alone on the times of the resident step; a stay with a store ends
// at the first anchor at which its copy is done, within its `earliest_evict` and `latest_evict` and
// not behind the begin of the next stay. With a budget: when an allocation would exceed it before
// that, the oldest that wait end at the last anchor ahead of the allocation, and compute waits
// there for their copies.
//
// Load: backward scan in order of awaits on the one H2D queue: latest start
// L[i] = min(need[i], L[i+1]) - transfer[i]; the load starts at the last anchor at or before L[i],
// behind the end of the stay that it follows. With a budget it starts later, at the first anchor
// from which memory up to its await leaves room, if need be on demand. Starts follow the order of
// awaits.
//
// A stay that would start where the one ahead of it ends goes on instead
// (simulator/lowering/touching_stays.h); then the others have more room and are placed again.
// Cost: O((events + stays) log events).
#pragma once

#include <optional>

#include "simulator/lowering/movement.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Fills in `load` and `evict` of all stays. `budget`: on requested bytes; what open places stay
// within as far as they can. Precondition: touching stays are merged.
void place_movement(const StepIndex& index, std::optional<Bytes> budget, Movement& movement);

}  // namespace stowage::simulator
