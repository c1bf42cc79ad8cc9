#include "gui/model/plan_edits.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "planner/streaming_layers.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/step/segment_row.h"

namespace stowage::gui {

using simulator::StatePlace;

namespace {

// No segment in which a call is `hit` stays; of those with several calls the others do, each by
// itself, unless they run in a segment that lay in it.
template <class Hit>
void end_segments(const TraceData& data, PlanDecisions& decisions, const Hit& hit) {
  const auto is_hit = [&](const std::string& segment) {
    const LayerCalls calls = simulator::calls_in(data.calls, segment);
    return std::any_of(calls.begin(), calls.end(), hit);
  };
  const auto runs_in_another = [&](const auto& call) {
    return std::any_of(decisions.segments.begin(), decisions.segments.end(),
                       [&](const std::string& segment) {
                         if (is_hit(segment)) return false;
                         const LayerCalls calls = simulator::calls_in(data.calls, segment);
                         return std::any_of(calls.begin(), calls.end(), [&](const auto& other) {
                           return other.first <= call.first && call.end <= other.end;
                         });
                       });
  };
  std::vector<std::string> segments;
  for (const std::string& segment : decisions.segments) {
    if (!is_hit(segment)) {
      segments.push_back(segment);
      continue;
    }
    for (const auto& call : simulator::calls_in(data.calls, segment)) {
      if (!hit(call) && !runs_in_another(call)) segments.push_back(call.name);
    }
  }
  if (segments == decisions.segments) return;
  decisions.segment_of = segments_of_saved(data.trace, data.calls, segments);
  decisions.segments = std::move(segments);
}

void end_segments_of(const TraceData& data, PlanDecisions& decisions,
                     const std::vector<SavedId>& rows) {
  if (decisions.segments.empty()) return;
  end_segments(data, decisions, [&](const auto& call) {
    return std::any_of(rows.begin(), rows.end(), [&](SavedId row) {
      const EventId pack = data.trace.saved.event[row.index()];
      return call.first <= pack && pack < call.end;
    });
  });
}

// And those of the same storages that ops make again, or shall: they are made as one.
std::vector<SavedId> with_shared(const Trace& trace, const PlanDecisions& decisions,
                                 const std::vector<SavedId>& rows, bool all) {
  std::vector<bool> is_of(trace.storages.size(), false);
  std::vector<bool> is_taken(trace.saved.size(), false);
  for (const SavedId row : rows) {
    is_taken[row.index()] = true;
    const StorageId storage = trace.saved.storage[row.index()];
    if (storage.valid()) is_of[storage.index()] = true;
  }
  std::vector<SavedId> taken = rows;
  for (std::size_t i = 0; i < is_taken.size(); ++i) {
    const StorageId storage = trace.saved.storage[i];
    if (is_taken[i] || !storage.valid() || !is_of[storage.index()]) continue;
    if (all || decisions.saved_is(SavedId(i), simulator::Decision::recompute))
      taken.emplace_back(i);
  }
  return taken;
}

// `layer_of`, by storage: the layer that it streams with; none: it is in no list.
std::vector<StreamingLayer> by_layer(const Trace& trace, const std::vector<LayerId>& layer_of) {
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

}  // namespace

PlanDecisions with_saved(const TraceData& data, const PlanDecisions& decisions,
                         const std::vector<SavedId>& rows, simulator::Decision decision) {
  PlanDecisions changed = decisions;
  const bool is_again = decision == simulator::Decision::recompute;
  const std::vector<SavedId> all = with_shared(data.trace, decisions, rows, is_again);
  end_segments_of(data, changed, all);
  for (const SavedId row : all) {
    simulator::SavedDecision& at = changed.saved[row.index()];
    if (at.decision == decision) continue;
    at = {};
    at.decision = decision;
  }
  return changed;
}

PlanDecisions with_saved(const TraceData& data, const PlanDecisions& decisions,
                         const std::vector<SavedId>& rows,
                         const simulator::SavedDecision& decision) {
  PlanDecisions changed = decisions;
  const std::vector<SavedId> all = with_shared(data.trace, decisions, rows, false);
  end_segments_of(data, changed, all);
  for (const SavedId row : all) {
    changed.saved[row.index()] = decision;
    changed.saved[row.index()].rule = -1;
  }
  return changed;
}

PlanDecisions with_segments(const TraceData& data, const PlanDecisions& decisions,
                            const std::vector<LayerId>& layers) {
  const Trace& trace = data.trace;
  PlanDecisions changed = decisions;
  for (const LayerId layer : layers) {
    const std::string& name = trace.string(trace.layers.name[layer.index()]);
    LayerCalls mine;
    for (const auto& call : data.calls) {
      if (call.layer == name) mine.push_back(call);
    }
    end_segments(data, changed, [&](const auto& call) {
      return std::any_of(mine.begin(), mine.end(), [&](const auto& each) {
        return call.first < each.end && each.first < call.end;
      });
    });
    for (const auto& call : mine) changed.segments.push_back(call.name);
    // The reason why it cannot run again is the library's to give.
    if (mine.empty()) changed.segments.push_back(name);
  }
  changed.segment_of = segments_of_saved(trace, data.calls, changed.segments);
  for (std::size_t i = 0; i < changed.saved.size(); ++i) {
    if (changed.segment(SavedId(i)) >= 0) changed.saved[i] = {};
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
  return by_layer(trace, planner::streaming_layers(trace));
}

std::vector<StreamingLayer> streaming_state_of(const Trace& trace) {
  std::vector<StreamingLayer> layers = by_layer(trace, planner::streaming_layers_of_state(trace));
  for (StreamingLayer& layer : layers) {
    std::set<StorageId> owners;
    for (const StorageId storage : layer.storages) {
      const StorageId owner = trace.storages.parameter[storage.index()];
      if (owner.valid()) owners.insert(owner);
    }
    layer.owners.assign(owners.begin(), owners.end());
  }
  return layers;
}

bool streams(const simulator::Decisions& decisions, const StreamingLayer& layer) {
  const simulator::ParameterDecisions& parameters = decisions.parameters;
  return std::any_of(layer.storages.begin(), layer.storages.end(), [&](StorageId storage) {
    return parameters.mode_of(storage) != simulator::StreamMode::off;
  });
}

PlanDecisions with_streaming(const Trace& trace, const PlanDecisions& decisions,
                             const std::vector<StreamingLayer>& layers, bool stream) {
  PlanDecisions changed = decisions;
  simulator::ParameterDecisions& parameters = changed.parameters;
  // Shards of a plan that streams nothing are a grouping alone.
  const bool none = parameters.stream.off();
  if (none || parameters.shard_of.empty()) parameters.shard_of.assign(trace.storages.size(), -1);
  std::int32_t next = 0;
  for (const std::int32_t shard : parameters.shard_of) next = std::max(next, shard + 1);
  const std::int32_t first_new = next;
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
    // Those of shards that are gone go with them: others take their numbers.
    std::vector<simulator::StreamMode> modes = parameters.stream.by_shard();
    modes.resize(static_cast<std::size_t>(first_new), simulator::StreamMode::off);
    modes.resize(static_cast<std::size_t>(std::max(next, 1)), simulator::StreamMode::forward);
    parameters.stream = simulator::StreamModes(std::move(modes));
  }
  return changed;
}

StatePlace state_place(const simulator::Decisions& decisions, const StreamingLayer& layer) {
  const auto any = [](const std::vector<bool>& of, const std::vector<StorageId>& rows) {
    return !of.empty() &&
           std::any_of(rows.begin(), rows.end(), [&](StorageId row) { return of[row.index()]; });
  };
  if (any(decisions.optimizer.updated_on_host, layer.owners)) return StatePlace::host;
  return any(decisions.optimizer.state_streams, layer.storages) ? StatePlace::stream
                                                                : StatePlace::device;
}

PlanDecisions with_state_place(const Trace& trace, const PlanDecisions& decisions,
                               const std::vector<StreamingLayer>& layers, StatePlace place) {
  PlanDecisions changed = decisions;
  std::vector<bool>& streams = changed.optimizer.state_streams;
  std::vector<bool>& on_host = changed.optimizer.updated_on_host;
  streams.resize(trace.storages.size(), false);
  on_host.resize(trace.storages.size(), false);
  std::set<LayerId> of_owners;
  for (const StreamingLayer& layer : layers) {
    if (state_place(changed, layer) == place) continue;
    for (const StorageId storage : layer.storages) {
      streams[storage.index()] = place == StatePlace::stream;
    }
    for (const StorageId owner : layer.owners) {
      of_owners.insert(trace.storages.layer[owner.index()]);
    }
  }
  const std::vector<LayerId> of_updated = simulator::layers_of_updated_parameters(trace);
  for (std::size_t s = 0; s < of_updated.size(); ++s) {
    if (of_updated[s].valid() && of_owners.contains(of_updated[s])) {
      on_host[s] = place == StatePlace::host;
    }
  }
  // As where no rule is about it.
  for (std::vector<bool>* each : {&streams, &on_host}) {
    if (std::find(each->begin(), each->end(), true) == each->end()) each->clear();
  }
  const auto is_same = [](const std::vector<bool>& now, const std::vector<bool>& before) {
    return now == before ||
           (now.empty() && std::find(before.begin(), before.end(), true) == before.end());
  };
  const bool same = is_same(streams, decisions.optimizer.state_streams) &&
                    is_same(on_host, decisions.optimizer.updated_on_host);
  return same ? decisions : changed;
}

}  // namespace stowage::gui
