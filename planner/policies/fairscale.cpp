// fairscale's OffloadModel (fairscale.experimental.nn.offload, checkpoint_activation=True): the
// model, items in a row, is cut into shards of about as many parameters each. A shard's parameters
// are on the device while it runs, the next one's come meanwhile; what a shard is given goes to the
// host, and its forward runs again in backward. The cut is its _split(): an item opens another
// shard where it would lift the one before above the whole's parameters over the number of shards.
//
// Approximated: its micro-batches are left out; the optimizer steps on the device, where the
// parameters come for it, not on the host; the items are the outermost layers with a number
// ("layers.3") and, beside them, the layers with parameters of their own; of a shard, layers of the
// kind that frees the most bytes run again, together where each is given what the one before it
// returned, else each by itself.
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/policies/policies.h"
#include "planner/streaming_layers.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/plan/pattern_text.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/segment_rule_writer.h"

namespace stowage::planner::builtin {
namespace {

// The item of the model that a layer is or lies in; none: in no numbered layer.
LayerId numbered_item(const Trace& trace, LayerId layer) {
  LayerId item;
  for (LayerId at = layer; at.valid(); at = trace.layers.parent[at.index()]) {
    const auto path = simulator::take_apart(trace.string(trace.layers.name[at.index()]));
    if (path.number >= 0 && path.suffix.empty()) item = at;
  }
  return item;
}

// By storage: the item of a parameter. One around other items has none, its parameters stay.
std::vector<LayerId> items_of(const Trace& trace) {
  std::vector<LayerId> items = streaming_layers(trace);
  std::vector<bool> is_around(trace.layers.size(), false);
  for (std::size_t s = 0; s < items.size(); ++s) {
    if (!items[s].valid()) continue;
    const LayerId numbered = numbered_item(trace, trace.storages.layer[s]);
    if (numbered.valid()) items[s] = numbered;
  }
  for (const LayerId item : items) {
    if (!item.valid()) continue;
    for (LayerId up = trace.layers.parent[item.index()]; up.valid();
         up = trace.layers.parent[up.index()]) {
      is_around[up.index()] = true;
    }
  }
  for (LayerId& item : items) {
    if (item.valid() && is_around[item.index()]) item = LayerId();
  }
  return items;
}

// By item, in order of layers, that is of their first use.
std::map<LayerId, std::int32_t> cut(const Trace& trace, const std::vector<LayerId>& items,
                                    std::int32_t shards) {
  std::map<LayerId, Bytes> bytes;
  Bytes total = 0;
  for (std::size_t s = 0; s < items.size(); ++s) {
    if (!items[s].valid()) continue;
    bytes[items[s]] += trace.storages.bytes[s];
    total += trace.storages.bytes[s];
  }
  shards = std::min(shards, static_cast<std::int32_t>(bytes.size()));
  std::map<LayerId, std::int32_t> shard_of;
  std::int32_t shard = 0;
  Bytes in_shard = 0;
  for (const auto& [item, own] : bytes) {
    if (in_shard > 0 && in_shard + own > total / shards && shard < shards - 1) {
      ++shard;
      in_shard = 0;
    }
    shard_of[item] = shard;
    in_shard += own;
  }
  return shard_of;
}

// The layers that run again, a list a shard.
std::vector<simulator::RecomputeRule> rules_by_shard(
    const Trace& recording, const std::map<std::int32_t, std::vector<std::string>>& layers,
    bool together) {
  std::vector<simulator::RecomputeRule> rules;
  for (const auto& [shard, names] : layers) {
    simulator::Structure structure;
    structure.recompute = names;
    for (simulator::RecomputeRule& rule : simulator::recompute_rules(recording, structure)) {
      rule.each = together ? simulator::RecomputeRule::kAll : 1;
      rule.boundary = simulator::Decision::offload;
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

void add_recompute(const simulator::StepIndex& index, const Given& given,
                   const std::map<LayerId, std::int32_t>& shard_of, PolicyRules& rules) {
  const Trace& recording = index.step().recording();
  std::map<std::string, LayerId> by_name;
  for (std::size_t l = 0; l < recording.layers.size(); ++l) {
    by_name.emplace(recording.string(recording.layers.name[l]), LayerId(l));
  }
  std::map<std::int32_t, std::vector<std::string>> layers;
  for (const std::string& name : largest_kind(index, given)) {
    const auto layer = by_name.find(name.substr(0, name.find('@')));
    if (layer == by_name.end()) continue;
    for (LayerId at = layer->second; at.valid(); at = recording.layers.parent[at.index()]) {
      if (const auto found = shard_of.find(at); found != shard_of.end()) {
        layers[found->second].push_back(name);
      }
    }
  }
  if (layers.empty()) {
    rules.notes.emplace_back(
        "policy fairscale: no layer of a shard can run again; what it saves stays");
    return;
  }
  simulator::Plan plan;
  plan.recompute = rules_by_shard(recording, layers, true);
  const auto step = simulator::unroll(recording, plan);
  if (!step) {
    plan.recompute = rules_by_shard(recording, layers, false);
    rules.notes.push_back("policy fairscale: the layers of a shard run again one by one: " +
                          step.error().message);
  }
  rules.recompute = std::move(plan.recompute);
}

}  // namespace

PolicyInfo fairscale_info() {
  return {"fairscale",
          "Shards of layers, the next one's parameters load while one runs; each runs again",
          {{"shards", "3", "of about as many parameters each (num_slices)"}},
          true};
}

Rules fairscale_rules(const simulator::StepIndex& index, const Options& options,
                      const Given& given) {
  const Result<std::int32_t> shards = whole_number(options, "shards", 1, "shards");
  if (!shards) return shards.error();
  const Trace& trace = index.trace();
  const std::vector<LayerId> items = items_of(trace);
  const std::map<LayerId, std::int32_t> shard_of = cut(trace, items, *shards);
  if (shard_of.empty()) {
    return Error{ErrorCode::bad_input, "policy fairscale: no layer has parameters", "", "",
                 "record a model whose layers have some"};
  }
  simulator::ParameterDecisions parameters;
  parameters.shard_of.assign(trace.storages.size(), -1);
  for (std::size_t s = 0; s < items.size(); ++s) {
    if (items[s].valid()) parameters.shard_of[s] = shard_of.at(items[s]);
  }
  parameters.stream = simulator::StreamMode::always;
  parameters.prefetch = 1;
  // No rule of saved tensors: one that keeps the rest would keep what segments are given.
  PolicyRules rules{{}, simulator::to_shards(trace, parameters), 0};
  std::set<std::int32_t> made;
  for (const auto& [item, shard] : shard_of) made.insert(shard);
  if (made.size() < static_cast<std::size_t>(*shards)) {
    rules.notes.push_back("policy fairscale: the layers make " + std::to_string(made.size()) +
                          " shards, fewer than shards=" + std::to_string(*shards));
  }
  add_recompute(index, given, shard_of, rules);
  return rules;
}

}  // namespace stowage::planner::builtin
