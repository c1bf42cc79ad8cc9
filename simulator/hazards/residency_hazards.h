// The part of the hazard check that is about streamed parameters: every touch finds the parameter
// on the device, no copy reads or writes a buffer that is gone or a slot that is being written, and
// no update of the optimizer is lost.
#pragma once

#include <vector>

#include "simulator/hazards/hazards.h"

namespace stowage::simulator {

// Over two periods. A parameter's buffer and slot are its own, so that the rest of the schedule
// adds nothing that this relies on. Precondition: all ids can be looked up (check_structure). Cost:
// O((touches + instructions) log (touches + instructions)).
[[nodiscard]] std::vector<Hazard> find_residency_hazards(const StepIndex& index,
                                                         const Schedule& schedule);

}  // namespace stowage::simulator
