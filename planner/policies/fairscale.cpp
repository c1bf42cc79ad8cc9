// fairscale's OffloadModel (fairscale.experimental.nn.offload): the model, items in a row, is cut
// into shards of about as many parameters each. A shard's parameters are on the device while it
// runs, the next one's come meanwhile; with checkpoint_activation, what a shard is given goes to
// the host, and its forward runs again in backward. The cut is its _split(): an item opens another
// shard where it would lift the one before above the whole's parameters over the number of shards.
// Shards may be given, too (its list of modules), by the items that they begin with.
//
// Approximated: with micro-batches the whole step runs in parts of the batch, and the shards come
// for each, where there one shard after the other runs in all of them; the optimizer steps on the
// device, where the parameters come for it, not on the host; the items are the outermost layers
// with a number ("layers.3") and, beside them, the layers with parameters of their own; of a shard,
// layers of the kind that frees the most bytes run again, together where each is given what the one
// before it returned, else each by itself.
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
#include "simulator/step/structure.h"
#include "simulator/step/unroll.h"
#include "traces/nearest.h"

namespace stowage::planner::builtin {
namespace {

constexpr const char* kShards = "3";

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
using ShardOf = std::map<LayerId, std::int32_t>;

ShardOf cut(const Trace& trace, const std::vector<LayerId>& items, std::int32_t shards) {
  std::map<LayerId, Bytes> bytes;
  Bytes total = 0;
  for (std::size_t s = 0; s < items.size(); ++s) {
    if (!items[s].valid()) continue;
    bytes[items[s]] += trace.storages.bytes[s];
    total += trace.storages.bytes[s];
  }
  shards = std::min(shards, static_cast<std::int32_t>(bytes.size()));
  ShardOf shard_of;
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

// Where another shard begins at each of these items: "layers.4+layers.8".
Result<ShardOf> cut_at(const Trace& trace, const std::vector<LayerId>& items,
                       const std::string& begins) {
  std::map<std::string, LayerId> named;
  ShardOf shard_of;
  for (const LayerId item : items) {
    if (!item.valid()) continue;
    named.emplace(trace.string(trace.layers.name[item.index()]), item);
    shard_of.emplace(item, 0);
  }
  for (std::size_t start = 0; start <= begins.size();) {
    const std::size_t plus = std::min(begins.find('+', start), begins.size());
    const std::string name = begins.substr(start, plus - start);
    start = plus + 1;
    const auto found = named.find(name);
    if (found == named.end()) {
      std::vector<std::string> known;
      for (const auto& [each, item] : named) known.push_back(each);
      const std::string near = nearest(name, known);
      return bad_option("at", begins,
                        "'" + name + "' is no item of the model" +
                            (near.empty() ? "" : " (the nearest is '" + near + "')") +
                            "; write at=" + (known.empty() ? "layers.4" : known.back()) +
                            ", several with + between");
    }
    for (auto& [item, shard] : shard_of) shard += item < found->second ? 0 : 1;
  }
  return shard_of;
}

Result<ShardOf> cut_as_asked(const Trace& trace, const std::vector<LayerId>& items,
                             const Options& options, std::vector<std::string>& notes) {
  const Result<std::int32_t> shards = whole_number(options, "shards", 1, "shards");
  if (!shards) return shards.error();
  const std::string& begins = options.at("at");
  if (!begins.empty()) {
    if (options.at("shards") != kShards) {
      return bad_option("at", begins, "without shards: it says where they begin");
    }
    return cut_at(trace, items, begins);
  }
  ShardOf shard_of = cut(trace, items, *shards);
  std::set<std::int32_t> made;
  for (const auto& [item, shard] : shard_of) made.insert(shard);
  if (made.size() < static_cast<std::size_t>(*shards)) {
    notes.push_back("policy fairscale: the layers make " + std::to_string(made.size()) +
                    " shards, fewer than shards=" + std::to_string(*shards));
  }
  return shard_of;
}

// The recording of the step in so many parts.
Result<const Trace*> recording_of(const Trace& recording, std::int32_t micro_batches) {
  Result<const Trace*> found =
      simulator::recording_in_parts(recording, {{simulator::kWholeStep, micro_batches}});
  if (found) return found;
  Error error = std::move(found).error();
  error.message = "policy fairscale: " + error.message;
  return error;
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

void add_recompute(const simulator::StepIndex& index, const Given& given, const ShardOf& shard_of,
                   PolicyRules& rules) {
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
    const auto one_by_one = simulator::unroll(recording, plan);
    rules.notes.push_back(one_by_one
                              ? "policy fairscale: the layers of a shard run again one by one: " +
                                    step.error().message
                              : "policy fairscale: no layer runs again, what they save stays: " +
                                    one_by_one.error().message);
    if (!one_by_one) return;
  }
  rules.recompute = std::move(plan.recompute);
}

Rules rules_of(const simulator::StepIndex& index, const Options& options, const Given& given) {
  const Trace& trace = index.trace();
  const std::vector<LayerId> items = items_of(trace);
  PolicyRules rules{{}, {}, 0};
  const Result<ShardOf> shard_of = cut_as_asked(trace, items, options, rules.notes);
  if (!shard_of) return shard_of.error();
  if (shard_of->empty()) {
    return Error{ErrorCode::bad_input, "policy fairscale: no layer has parameters", "", "",
                 "record a model whose layers have some"};
  }
  simulator::ParameterDecisions parameters;
  parameters.shard_of.assign(trace.storages.size(), -1);
  for (std::size_t s = 0; s < items.size(); ++s) {
    if (items[s].valid()) parameters.shard_of[s] = shard_of->at(items[s]);
  }
  parameters.stream = simulator::StreamMode::always;
  parameters.prefetch = 1;
  rules.parameters = simulator::to_shards(trace, parameters);
  if (options.at("recompute") == "no") {
    rules.saved = {keep_the_rest()};
    return rules;
  }
  // No rule of saved tensors: one that keeps the rest would keep what segments are given.
  add_recompute(index, given, *shard_of, rules);
  return rules;
}

}  // namespace

PolicyInfo fairscale_info() {
  return {
      "fairscale",
      "Shards of layers, the next one's parameters load while one runs; each runs again",
      {{"shards", kShards, "of about as many parameters each (num_slices)"},
       {"at", "", "the items that another shard begins at, as layers.4+layers.8"},
       {"recompute", "yes", "no: what a shard saves stays (checkpoint_activation)"},
       {"micro_batches", "1", "parts of the batch, as the step was recorded (num_microbatches)"}},
      true,
      Divides::on_request};
}

Rules fairscale_rules(const simulator::StepIndex& whole, const Options& options,
                      const Given& given) {
  const std::string& recompute = options.at("recompute");
  if (recompute != "yes" && recompute != "no") {
    return bad_option("recompute", recompute, "yes or no");
  }
  const Result<std::int32_t> parts = whole_number(options, "micro_batches", 1, "parts");
  if (!parts) return parts.error();
  if (*parts > 1) {
    const Result<const Trace*> divided = recording_of(whole.step().recording(), *parts);
    if (!divided) return divided.error();
    const simulator::StepIndex index(**divided);
    Rules rules = rules_of(index, options, Given{given.budget});
    if (rules) rules->micro_batches = {{simulator::kWholeStep, *parts}};
    return rules;
  }
  return rules_of(whole, options, given);
}

}  // namespace stowage::planner::builtin
