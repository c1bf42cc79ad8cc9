// Brute-force oracle for the hazard check, for all tenants of all kinds at once. Periods are
// run in program order: what is on the device, what has been waited for, whose bytes and which
// version of them lie where. Every access becomes a node of a graph; then the transitive closure,
// and every pair of conflicting accesses compared. Shares nothing with the check but the contracts
// in simulator/schedule/schedule.h and tenant_kind.h: the uses are found again in the trace's
// tables. For schedules whose ids can be looked up.
#pragma once

#include <vector>

#include "simulator/schedule/schedule.h"

namespace stowage::testing {

struct OraclePeriod {
  const Trace& trace;
  const simulator::Schedule& schedule;
};

// True when every use finds its bytes and no access can go wrong, over two periods. Says nothing
// about the schedule's form.
bool oracle_is_safe(const Trace& trace, const simulator::Schedule& schedule);
// Over these, one after the other. Their schedules have the same tenants and stays, by number; an
// evict waits for the store of its stay if any of them stores it.
bool oracle_is_safe(const std::vector<OraclePeriod>& periods);

}  // namespace stowage::testing
