// The smallest shards of parameters that a plan can name: what the planner decides about one by one
// and what the policy `layerwise` moves.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.h"

namespace stowage::planner {

// By storage: the shard of a parameter, numbered from 0 in order of layers, -1 for every other
// storage. A shard is the parameters of a layer and of all layers inside it, so that a pattern of
// layers names it alone; parameters that are used outside of all layers are in none. Cost:
// O(layers * depth + storages).
[[nodiscard]] std::vector<std::int32_t> smallest_shards(const Trace& trace);

}  // namespace stowage::planner
