// Brute-force oracle for streamed parameters: two periods run in program order with the parameters'
// versions followed through buffers and slots; then the happens-before graph written out node by
// node, its transitive closure, and every pair of conflicting accesses compared. Other copies are
// left out. For schedules whose ids can be looked up.
#pragma once

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::testing {

// True when every touch finds the newest version and no access can go wrong. Says nothing about the
// schedule's form.
bool oracle_streams_safely(const simulator::StepIndex& index, const simulator::Schedule& schedule);

}  // namespace stowage::testing
