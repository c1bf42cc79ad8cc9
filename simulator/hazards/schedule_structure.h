// Whether a schedule is well formed: its tables fit the trace and each other, and every instruction
// is there once, at the place that the contract in simulator/schedule/schedule.h gives it. The
// order of memory accesses is the other half of the hazard check (simulator/hazards/hazards.cpp).
#pragma once

#include <vector>

#include "simulator/hazards/hazards.h"

namespace stowage::simulator {

struct Structure {
  std::vector<Hazard> hazards;  // all malformed
  bool readable = true;         // every id and event in the schedule can be looked up
};

[[nodiscard]] Structure check_structure(const StepIndex& index, const Schedule& schedule);

// "offload 3 (layers.0.mlp#2)"; for messages.
[[nodiscard]] std::string label(const Trace& trace, const Schedule& schedule, OffloadId offload);
// "parameter 3 (layers.0.mlp)".
[[nodiscard]] std::string label(const Trace& trace, const Schedule& schedule,
                                ParameterId parameter);

}  // namespace stowage::simulator
