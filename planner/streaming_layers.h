// The layers whose parameters a plan decides about one by one: the smallest sets of parameters that
// a pattern of layers names alone.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.h"

namespace stowage::planner {

// By storage: the layer that a parameter streams with, none for every other storage. It is the
// outermost layer around the parameter that has parameters of its own, and stands for all that is
// inside it. Parameters that are used outside of all layers have none. Cost: O(layers * depth +
// storages).
[[nodiscard]] std::vector<LayerId> streaming_layers(const Trace& trace);

// The same for the optimizer's state, and for the gradients that the step makes: the layer that
// their parameter streams with.
[[nodiscard]] std::vector<LayerId> streaming_layers_of_state(const Trace& trace);
[[nodiscard]] std::vector<LayerId> streaming_layers_of_gradients(const Trace& trace);

// One shard for each of these layers, numbered from 0 in order of layers; -1 where there is none.
[[nodiscard]] std::vector<std::int32_t> shard_for_each_layer(const Trace& trace);

}  // namespace stowage::planner
