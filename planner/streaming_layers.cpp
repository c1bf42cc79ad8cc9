#include "planner/streaming_layers.h"

#include <cstddef>
#include <map>

namespace stowage::planner {

std::vector<LayerId> streaming_layers(const Trace& trace) {
  const Storages& storages = trace.storages;
  const auto is_candidate = [&](std::size_t s) {
    return storages.storage_class[s] == StorageClass::parameter && storages.layer[s].valid() &&
           storages.layer[s].index() > 0;  // row 0 is the step
  };
  std::vector<bool> has(trace.layers.size(), false);
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (is_candidate(s)) has[storages.layer[s].index()] = true;
  }
  std::vector<LayerId> layers(storages.size());
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (!is_candidate(s)) continue;
    for (LayerId at = storages.layer[s]; at.valid(); at = trace.layers.parent[at.index()]) {
      if (has[at.index()]) layers[s] = at;
    }
  }
  return layers;
}

namespace {

// That which the parameter of each such storage streams with.
template <class IsOne>
std::vector<LayerId> layers_by_parameter(const Trace& trace, const IsOne& is_one) {
  const Storages& storages = trace.storages;
  const std::vector<LayerId> of_parameters = streaming_layers(trace);
  std::vector<LayerId> layers(storages.size());
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (!is_one(s) || !storages.parameter[s].valid()) continue;
    layers[s] = of_parameters[storages.parameter[s].index()];
  }
  return layers;
}

}  // namespace

std::vector<LayerId> streaming_layers_of_state(const Trace& trace) {
  return layers_by_parameter(trace, [&](std::size_t s) {
    return trace.storages.storage_class[s] == StorageClass::optimizer_state;
  });
}

std::vector<LayerId> streaming_layers_of_gradients(const Trace& trace) {
  return layers_by_parameter(trace, [&](std::size_t s) {
    return trace.storages.storage_class[s] == StorageClass::gradient &&
           trace.storages.alloc_event[s].valid();
  });
}

std::vector<std::int32_t> shard_for_each_layer(const Trace& trace) {
  const std::vector<LayerId> layers = streaming_layers(trace);
  std::map<LayerId, std::int32_t> number;
  for (const LayerId layer : layers) {
    if (layer.valid()) number[layer] = 0;
  }
  std::int32_t next = 0;
  for (auto& [layer, shard] : number) shard = next++;
  std::vector<std::int32_t> shards;
  for (const LayerId layer : layers) shards.push_back(layer.valid() ? number[layer] : -1);
  return shards;
}

}  // namespace stowage::planner
