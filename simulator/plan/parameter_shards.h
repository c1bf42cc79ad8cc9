// The `parameters` part of a plan resolved against a trace, and back: patterns of layers, and the
// shard of each parameter's storage.
#pragma once

#include <optional>

#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::simulator {

// Errors (bad_input): a pattern that does not parse, or that matches no layer with parameters (with
// the nearest one). The pointer is "/parameters/shards/<shard>/<pattern>". A pattern whose layers
// all belong to earlier shards is fine. Cost: O(patterns * layers + storages).
[[nodiscard]] Result<ParameterDecisions> resolve_parameters(const Trace& trace,
                                                            const ParameterPlan& plan);

// Shards that resolve to exactly these, short: a layer for all that is inside it, a range for
// layers that differ in a number. Shards without a parameter are left out, the others renumbered in
// order. Precondition (asserted): patterns of layers can say it, that is, parameters of one layer
// share a shard, and a layer inside another one is in the same shard or in an earlier one.
[[nodiscard]] ParameterPlan to_shards(const Trace& trace, const ParameterDecisions& decisions);

// The `parameters` of a plan: to_shards(), nothing where none stream.
[[nodiscard]] std::optional<ParameterPlan> to_parameters(const Trace& trace,
                                                         const ParameterDecisions& decisions);

}  // namespace stowage::simulator
