// The half of the hazard check that is about memory accesses: two periods are walked in program
// order, with the clocks of happens_before.h, and every access is held against those that it must
// not overtake. All tenants of all kinds in one walk, so that a wait for one counts for all.
#pragma once

#include <vector>

#include "simulator/hazards/hazards.h"

namespace stowage::simulator {

// Precondition: every id in the schedule can be looked up (check_structure). A malformed schedule
// gives some verdict all the same. Cost: as find_hazards().
[[nodiscard]] std::vector<Hazard> unordered_accesses(const StepIndex& index,
                                                     const Schedule& schedule);

}  // namespace stowage::simulator
