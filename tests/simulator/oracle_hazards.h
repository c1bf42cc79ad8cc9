// Brute-force oracle for the hazard check: the happens-before graph written out node by node over
// two periods, its full transitive closure, every pair of conflicting accesses compared; then the
// bytes themselves: tokens are moved along one order of the graph, and every copy and every unpack
// must find what it is meant to find. For schedules whose ids can be looked up.
#pragma once

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::testing {

// True when no access can go wrong. Says nothing about the schedule's form.
bool oracle_is_safe(const simulator::StepIndex& index, const simulator::Schedule& schedule);

}  // namespace stowage::testing
