#include "planner/smallest_shards.h"

#include <cstddef>
#include <map>

namespace stowage::planner {

std::vector<std::int32_t> smallest_shards(const Trace& trace) {
  const Storages& storages = trace.storages;
  const auto is_candidate = [&](std::size_t s) {
    return storages.storage_class[s] == StorageClass::parameter && storages.layer[s].valid() &&
           storages.layer[s].index() > 0;  // row 0 is the step
  };
  std::vector<bool> has(trace.layers.size(), false);
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (is_candidate(s)) has[storages.layer[s].index()] = true;
  }
  std::vector<std::int32_t> of_layer(trace.layers.size(), -1);
  std::map<LayerId, std::int32_t> numbers;
  for (std::size_t l = 0; l < of_layer.size(); ++l) {
    LayerId outermost;
    for (LayerId at(l); at.valid(); at = trace.layers.parent[at.index()]) {
      if (has[at.index()]) outermost = at;
    }
    if (!outermost.valid()) continue;
    const auto next = static_cast<std::int32_t>(numbers.size());
    of_layer[l] = numbers.emplace(outermost, next).first->second;
  }
  std::vector<std::int32_t> shards(storages.size(), -1);
  for (std::size_t s = 0; s < shards.size(); ++s) {
    if (is_candidate(s)) shards[s] = of_layer[storages.layer[s].index()];
  }
  return shards;
}

}  // namespace stowage::planner
