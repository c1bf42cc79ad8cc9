#include "simulator/plan/parameter_shards.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan/layer_patterns.h"

namespace stowage::simulator {
namespace {

// By storage: of parameters alone.
std::vector<LayerId> layers_of_parameters(const Trace& trace) {
  std::vector<LayerId> layers(trace.storages.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::parameter) continue;
    layers[s] = trace.storages.layer[s];
  }
  return layers;
}

}  // namespace

Result<ParameterDecisions> resolve_parameters(const Trace& trace, const ParameterPlan& plan) {
  ParameterDecisions decisions;
  decisions.stream = plan.stream;
  decisions.prefetch = plan.prefetch;
  if (plan.shards.empty()) return decisions;
  const std::vector<LayerId> layers = layers_of_parameters(trace);
  const std::vector<bool> has = layers_around(trace, layers);
  NumberedLayers shards(trace, has, "parameters");
  for (std::size_t shard = 0; shard < plan.shards.size(); ++shard) {
    for (std::size_t i = 0; i < plan.shards[shard].size(); ++i) {
      const std::string pointer =
          "/parameters/shards/" + std::to_string(shard) + "/" + std::to_string(i);
      const Status added =
          shards.add(plan.shards[shard][i], static_cast<std::int32_t>(shard), pointer);
      if (!added) return added.error();
    }
  }
  decisions.shard_of.assign(trace.storages.size(), -1);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (layers[s].valid()) decisions.shard_of[s] = shards.number_of(layers[s]);
  }
  return decisions;
}

ParameterPlan to_shards(const Trace& trace, const ParameterDecisions& decisions) {
  ParameterPlan plan;
  plan.stream = decisions.stream;
  plan.prefetch = decisions.prefetch;
  if (decisions.shard_of.empty()) return plan;
  STOWAGE_ASSERT(decisions.shard_of.size() == trace.storages.size());
  const std::vector<LayerId> layers = layers_of_parameters(trace);
  const std::vector<bool> has = layers_around(trace, layers);
  std::vector<std::int32_t> of_layer(trace.layers.size(), LayerPatterns::kNothing);
  std::map<std::int32_t, std::int32_t> number;  // of the shards that are written
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (!layers[s].valid()) continue;
    of_layer[layers[s].index()] = decisions.shard_of[s];
    if (decisions.shard_of[s] >= 0) number[decisions.shard_of[s]] = 0;
  }
  std::int32_t next = 0;
  for (auto& [shard, written] : number) written = next++;
  if (!plan.stream.by_shard().empty() && !number.empty()) {
    std::vector<StreamMode> modes;
    for (const auto& [shard, written] : number) {
      modes.push_back(decisions.stream.of(static_cast<std::size_t>(shard)));
    }
    plan.stream = StreamModes(std::move(modes));
  }
  const LayerPatterns writer(trace, has, of_layer);
  for (const auto& [wide, spelling] :
       {std::pair{true, Spelling::loose}, std::pair{true, Spelling::exact},
        std::pair{false, Spelling::loose}, std::pair{false, Spelling::exact}}) {
    plan.shards.clear();
    for (const auto& [shard, written] : number) {
      plan.shards.push_back(writer.of(shard, wide, spelling));
    }
    const auto resolved = resolve_parameters(trace, plan);
    if (!resolved) continue;
    bool same = true;
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      const std::int32_t wanted = layers[s].valid() ? decisions.shard_of[s] : -1;
      const std::int32_t got = resolved->shard_of.empty() ? -1 : resolved->shard_of[s];
      same = same && got == (wanted < 0 ? -1 : number[wanted]);
    }
    if (same) return plan;
  }
  STOWAGE_ASSERT(false && "patterns of layers cannot say which shard each parameter is of");
  return plan;
}

std::optional<ParameterPlan> to_parameters(const Trace& trace,
                                           const ParameterDecisions& decisions) {
  if (decisions.stream.off()) return std::nullopt;
  ParameterPlan plan = to_shards(trace, decisions);
  return plan.stream.off() ? std::nullopt : std::optional(std::move(plan));
}

}  // namespace stowage::simulator
