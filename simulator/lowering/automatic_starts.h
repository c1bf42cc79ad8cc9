// The second half of place_movement(): where reloads and loads start. How it chooses:
// simulator/lowering/automatic_points.h.
#pragma once

#include <optional>
#include <vector>

#include "simulator/lowering/automatic_points.h"

namespace stowage::simulator {

// Fills in `start_reload` and the `start` of stays. `delta`: what place_releases() returned.
// Cost: O((events + moved) log events).
void place_starts(const StepIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
                  const std::vector<Bytes>& delta, Movement& movement);

}  // namespace stowage::simulator
