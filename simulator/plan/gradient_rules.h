// The `gradients` part of a plan resolved against a trace, and back: patterns of layers, and the
// storages of the gradients that leave the device.
#pragma once

#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::simulator {

// By storage: the layer of the parameter whose gradient the step leaves in it, made in the step or
// kept from step to step, which stays; none for every other storage (what the step before left,
// what an update uses up), and where that is not known. Cost: O(storages).
[[nodiscard]] std::vector<LayerId> layers_of_gradients(const Trace& trace);

// Errors (bad_input): those of resolve_leaving(), with "/gradients".
[[nodiscard]] Result<GradientDecisions> resolve_gradients(const Trace& trace,
                                                          const std::vector<GradientRule>& rules);

// As to_leaving_rules().
[[nodiscard]] std::vector<GradientRule> to_gradient_rules(const Trace& trace,
                                                          const GradientDecisions& decisions);

}  // namespace stowage::simulator
