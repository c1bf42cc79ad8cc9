// The half of the hazard check that is about planned memory: address ranges that share bytes are
// there one after the other. Two periods are walked with the clocks of happens_before.h; what is
// read here of the placement is which bytes each range has, never for how long.
#pragma once

#include <vector>

#include "simulator/hazards/hazards.h"
#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"

namespace stowage::simulator {

// Every pair that is not ordered, as HazardKind::memory_shared. A range is there from the first
// access to it (where it is allocated; of a load its copy) to the last one (where it is freed,
// behind the copies that compute has waited for); one that nothing allocates or frees is there all
// the time. Preconditions: as unordered_accesses(); `live` is of this schedule, and the placement
// gives each of its ranges enough pages. Cost: O(events + instructions + mapped pages log).
[[nodiscard]] std::vector<Hazard> shared_memory_hazards(const StepIndex& index,
                                                        const Schedule& schedule,
                                                        const LiveRanges& live,
                                                        const DevicePlacement& placement);

}  // namespace stowage::simulator
