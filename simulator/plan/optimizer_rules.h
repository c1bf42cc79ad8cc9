// The `optimizer` part of a plan resolved against a trace, and back: patterns of layers, the
// storages of the state that streams, and the parameters that the host updates.
#pragma once

#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::simulator {

// By storage: the layer of the parameter that a piece of optimizer state belongs to; none for every
// other storage, and where that is not known. Cost: O(storages).
[[nodiscard]] std::vector<LayerId> layers_of_optimizer_state(const Trace& trace);

// By storage: the layer of a parameter whose gradient the trace knows, so that it may be updated;
// none for every other storage. Cost: O(storages).
[[nodiscard]] std::vector<LayerId> layers_of_updated_parameters(const Trace& trace);

// Errors (bad_input): a pattern that does not parse, or that matches no layer whose parameters have
// state (with the nearest one); of parameters that have none, rules say where they are updated. The
// pointer is "/optimizer/<rule>/layer". Cost: O(rules * layers + storages).
[[nodiscard]] Result<OptimizerDecisions> resolve_optimizer(const Trace& trace,
                                                           const std::vector<OptimizerRule>& rules);

// Rules that resolve to exactly these, short: a layer for all that is inside it, a range for layers
// that differ in a number. Empty where nothing streams and the host updates nothing. Precondition
// (asserted): rules can say it, that is, all state of one layer's parameters is treated alike.
[[nodiscard]] std::vector<OptimizerRule> to_optimizer_rules(const Trace& trace,
                                                            const OptimizerDecisions& decisions);

}  // namespace stowage::simulator
