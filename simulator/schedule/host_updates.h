// What the host updates under a schedule, and with what.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::simulator {

// One Action::update.
struct HostUpdate {
  StayId stay;                  // of the gradient, behind whose store it starts
  StorageId of;                 // the parameter
  TenantId gradient;            // whose home it reads
  TenantId parameter;           // whose home it writes; none: the schedule has no such tenant
  std::vector<TenantId> state;  // likewise; in order of tenants
  Bytes bytes = 0;              // of all these homes
};

// In order of instructions. Cost: O(tenants log tenants + instructions).
[[nodiscard]] std::vector<HostUpdate> host_updates(const Trace& trace, const Schedule& schedule);

}  // namespace stowage::simulator
