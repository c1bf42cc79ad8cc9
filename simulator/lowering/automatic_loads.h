// The second half of place_movement(): where loads start. How it chooses:
// simulator/lowering/automatic_points.h.
#pragma once

#include <optional>
#include <vector>

#include "simulator/lowering/movement.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

// Fills in `load`. `delta`: what place_evicts() returned. Cost: O((events + stays) log events).
void place_loads(const StepIndex& index, std::optional<Bytes> budget,
                 const std::vector<Bytes>& delta, Movement& movement);

}  // namespace stowage::simulator
