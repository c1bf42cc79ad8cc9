// Budgets near the memory floor that are searched beside the one asked for. Little memory more is
// much of the step there, and one search finds by luck what another one does not.
#pragma once

#include <vector>

#include "traces/units.h"

namespace stowage::planner {

// Budgets up to this part of the floor above it are near.
inline constexpr Bytes kNearFloor = 8;

// Floor and 1/128, 1/64, 1/32, 1/16 of it more, as far as they are below a budget near the floor,
// the smallest first; none of a budget farther above, or of one below all of them. A larger budget
// that is near has all points of a smaller one.
[[nodiscard]] std::vector<Bytes> points_near_floor(Bytes floor, Bytes budget);

}  // namespace stowage::planner
