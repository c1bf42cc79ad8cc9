// The table of lowering: what makes tenants and stays of each kind out of decisions. All that
// follows, the placement and the schedule, is the same for every kind.
#pragma once

#include <span>
#include <vector>

#include "simulator/lowering/lowering.h"
#include "simulator/lowering/movement.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::simulator {

// What of one kind moves. `taken`, by row of storages: those that are tenants already.
using TenantMaker = Result<Movement> (*)(const StepIndex& index, const Decisions& decisions,
                                         const std::vector<bool>& taken);

// In the order of their tenants in a schedule. A storage that several could have is the last one's.
[[nodiscard]] std::span<const TenantMaker> tenant_makers();

// lower() with these instead of tenant_makers().
[[nodiscard]] Result<Lowering> lower(const StepIndex& index, const Decisions& decisions,
                                     std::span<const TenantMaker> makers);

}  // namespace stowage::simulator
