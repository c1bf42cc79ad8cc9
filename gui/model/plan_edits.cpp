#include "gui/model/plan_edits.h"

#include <algorithm>
#include <map>

#include "planner/streaming_layers.h"

namespace stowage::gui {

simulator::Decisions with_saved(const simulator::Decisions& decisions,
                                const std::vector<SavedId>& rows, simulator::Decision decision) {
  simulator::Decisions changed = decisions;
  for (const SavedId row : rows) {
    simulator::SavedDecision& at = changed.saved[row.index()];
    if (at.decision == decision) continue;
    at = {};
    at.decision = decision;
  }
  return changed;
}

simulator::Decisions with_saved(const simulator::Decisions& decisions,
                                const std::vector<SavedId>& rows,
                                const simulator::SavedDecision& decision) {
  simulator::Decisions changed = decisions;
  for (const SavedId row : rows) {
    changed.saved[row.index()] = decision;
    changed.saved[row.index()].rule = -1;
  }
  return changed;
}

bool is_inside(const Trace& trace, LayerId layer, LayerId ancestor) {
  for (; layer.valid(); layer = trace.layers.parent[layer.index()]) {
    if (layer == ancestor) return true;
  }
  return false;
}

std::vector<SavedId> saved_in(const Trace& trace, LayerId layer) {
  std::vector<SavedId> rows;
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    if (is_inside(trace, trace.saved.layer[i], layer)) rows.emplace_back(i);
  }
  return rows;
}

std::vector<StreamingLayer> streaming_layers_of(const Trace& trace) {
  const std::vector<LayerId> layer_of = planner::streaming_layers(trace);
  std::map<LayerId, StreamingLayer> found;
  for (std::size_t i = 0; i < layer_of.size(); ++i) {
    if (!layer_of[i].valid()) continue;
    StreamingLayer& layer = found[layer_of[i]];
    layer.layer = layer_of[i];
    layer.bytes += trace.storages.bytes[i];
    layer.storages.emplace_back(i);
  }
  std::vector<StreamingLayer> layers;
  layers.reserve(found.size());
  for (auto& [id, layer] : found) layers.push_back(std::move(layer));
  return layers;
}

bool streams(const simulator::Decisions& decisions, const StreamingLayer& layer) {
  const simulator::ParameterDecisions& parameters = decisions.parameters;
  return std::any_of(layer.storages.begin(), layer.storages.end(), [&](StorageId storage) {
    return parameters.mode_of(storage) != simulator::StreamMode::off;
  });
}

simulator::Decisions with_streaming(const Trace& trace, const simulator::Decisions& decisions,
                                    const std::vector<StreamingLayer>& layers, bool stream) {
  simulator::Decisions changed = decisions;
  simulator::ParameterDecisions& parameters = changed.parameters;
  // Shards of a plan that streams nothing are a grouping alone.
  const bool none = parameters.stream.off();
  if (none || parameters.shard_of.empty()) parameters.shard_of.assign(trace.storages.size(), -1);
  std::int32_t next = 0;
  for (const std::int32_t shard : parameters.shard_of) next = std::max(next, shard + 1);
  for (const StreamingLayer& layer : layers) {
    if (stream && !none && streams(changed, layer)) continue;
    for (const StorageId storage : layer.storages) {
      parameters.shard_of[storage.index()] = stream ? next : -1;
    }
    ++next;
  }
  const bool any = std::any_of(parameters.shard_of.begin(), parameters.shard_of.end(),
                               [](std::int32_t shard) { return shard >= 0; });
  if (!any) {
    parameters = {};
  } else if (none) {
    parameters.stream = simulator::StreamMode::forward;
  } else if (!parameters.stream.by_shard().empty()) {
    std::vector<simulator::StreamMode> modes = parameters.stream.by_shard();
    modes.resize(static_cast<std::size_t>(next), simulator::StreamMode::forward);
    parameters.stream = simulator::StreamModes(std::move(modes));
  }
  return changed;
}

}  // namespace stowage::gui
