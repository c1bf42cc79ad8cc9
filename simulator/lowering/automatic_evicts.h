// The first half of place_movement(): where stays end. How it chooses:
// simulator/lowering/automatic_points.h.
#pragma once

#include <optional>
#include <vector>

#include "simulator/lowering/movement.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Fills in `evict`. Returns, with a budget, the requested bytes as changes by event, one entry more
// than events (what outlives the step goes there): stays end at their evicts and begin at their
// await, at the load where that is fixed. Cost: O((events + stays) log events).
std::vector<Bytes> place_evicts(const StepIndex& index, std::optional<Bytes> budget,
                                Movement& movement);

}  // namespace stowage::simulator
