// The part of schedule_structure.h that is about streamed parameters: their slots, and whether
// every residency has its instructions, in order, and none overlaps another one of its parameter.
#pragma once

#include <vector>

#include "simulator/hazards/hazards.h"

namespace stowage::simulator {

// Appends what is wrong, all malformed. Precondition: all ids can be looked up.
// Cost: O(instructions + residencies log residencies + slots log slots).
void check_residencies(const StepIndex& index, const Schedule& schedule,
                       std::vector<Hazard>& hazards);

}  // namespace stowage::simulator
