// Whether a schedule is well formed: its tables fit the step and each other, and every instruction
// is there once, in the order that the contract in simulator/schedule/schedule.h gives it, and as
// the tenant's kind asks. The order of memory accesses is the other half of the hazard check
// (simulator/hazards/hazards.cpp).
#pragma once

#include <vector>

#include "simulator/hazards/hazards.h"

namespace stowage::simulator {

struct CheckedStructure {
  std::vector<Hazard> hazards;  // all malformed
  bool readable = true;         // every id and event in the schedule can be looked up
};

// Cost: O(instructions + stays + slots log slots).
[[nodiscard]] CheckedStructure check_structure(const StepIndex& index, const Schedule& schedule);

}  // namespace stowage::simulator
