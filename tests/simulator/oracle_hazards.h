// Brute-force oracle for the hazard check, for all tenants of all kinds at once. Two periods are
// run in program order: what is on the device, what has been waited for, whose bytes and which
// version of them lie where. Every access becomes a node of a graph; then the transitive closure,
// and every pair of conflicting accesses compared. Shares nothing with the check but the contracts
// in simulator/schedule/schedule.h and tenant_kind.h: the uses are found again in the trace's
// tables. For schedules whose ids can be looked up.
#pragma once

#include "simulator/schedule/schedule.h"

namespace stowage::testing {

// True when every use finds its bytes and no access can go wrong. Says nothing about the schedule's
// form.
bool oracle_is_safe(const Trace& trace, const simulator::Schedule& schedule);

}  // namespace stowage::testing
