// What a plan says about optimizer state where the host updates parameters.
#pragma once

#include <vector>

#include "planner/pins.h"
#include "planner/structure_search.h"
#include "planner/updates_on_host.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"

namespace stowage::planner {

// Of decisions for `in`. Where the host updates all that it can (those of `all`; null: it can
// nothing), it is asked to update everything but what streams: what it cannot, notes say.
// Otherwise, the layers of what it updates. `pinned`: null where nothing is. Precondition: the host
// updates all of a layer's parameters or none (planner/streaming_layers.h).
[[nodiscard]] std::vector<simulator::OptimizerRule> optimizer_rules(
    const StructureSearch& in, simulator::OptimizerDecisions decisions, UpdatesOnHost* all,
    const Pins* pinned);

}  // namespace stowage::planner
