#include "planner/pins.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/streaming_layers.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/offload_groups.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/plan/rule_match.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"

namespace stowage::planner {
namespace {

using simulator::CopyMode;
using simulator::Decision;
using simulator::Plan;
using simulator::SavedDecision;

Error bad_pin(std::string message, std::string pointer, std::string hint) {
  return {ErrorCode::bad_input, std::move(message), "", std::move(pointer), std::move(hint)};
}

bool says_the_same(SavedDecision a, SavedDecision b) {
  a.rule = b.rule = -1;
  return a == b;
}

Choice choice_of(simulator::StreamMode mode) {
  switch (mode) {
    case simulator::StreamMode::off:
      return Choice::keep;
    case simulator::StreamMode::forward:
      return Choice::forward;
    case simulator::StreamMode::backward:
      return Choice::backward;
    case simulator::StreamMode::always:
      return Choice::always;
  }
  return Choice::keep;
}

std::string layer_name(const Trace& trace, LayerId layer) {
  return trace.string(trace.layers.name[layer.index()]);
}

bool is_empty(const Plan& plan) {
  return plan.saved.empty() && plan.recompute.empty() && plan.gradients.empty() &&
         plan.optimizer.empty() && (!plan.parameters || plan.parameters->shards.empty());
}

// By storage the first rule that names it, -1 = none; `named_by` resolves one rule as if what it
// names left.
template <class Rule, class NamedBy>
std::vector<std::int32_t> first_rules(const Trace& trace, const std::vector<Rule>& rules,
                                      const NamedBy& named_by) {
  std::vector<std::int32_t> first(trace.storages.size(), -1);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const std::vector<bool> named = named_by(rules[r]);
    for (std::size_t s = 0; s < named.size(); ++s) {
      if (named[s] && first[s] < 0) first[s] = static_cast<std::int32_t>(r);
    }
  }
  return first;
}

}  // namespace

class Pins::Maker {
 public:
  Maker(const simulator::StepIndex& recorded, const Plan& plan)
      : recorded_(recorded), recording_(recorded.trace()), plan_(plan) {}

  Result<std::shared_ptr<const Pins>> run() {
    plan_.micro_batches.clear();
    for (const simulator::Structure::Parts& parts : simulator::recorded_parts(recording_)) {
      plan_.micro_batches.push_back({parts.segment, parts.parts});
    }
    if (plan_.parameters && plan_.parameters->prefetch) {
      return bad_pin("parameters that are pinned are loaded automatically, not by 'prefetch'",
                     "/parameters/prefetch", "leave it out");
    }
    auto structure = simulator::structure_of(recording_, plan_);
    if (!structure) return structure.error();
    pins_.structure_ = std::move(structure).value();
    pins_.structure_.parts.clear();
    const auto step = simulator::unroll(recording_, plan_);
    if (!step) return step.error();
    const simulator::StepIndex index(*step);
    const auto lowered = simulator::lower(index, plan_);
    if (!lowered) return lowered.error();
    if (Status status = add_saved(index); !status) return status.error();
    if (Status status = add_parameters(); !status) return status.error();
    if (Status status = add_optimizer(); !status) return status.error();
    if (Status status = add_gradients(); !status) return status.error();
    return std::make_shared<const Pins>(std::move(pins_));
  }

 private:
  // By saved tensor: a rule names it.
  [[nodiscard]] Result<std::vector<bool>> named_saved(const simulator::StepIndex& index) const {
    Plan all_leave = plan_;
    for (simulator::RecomputeRule& rule : all_leave.recompute) {
      if (rule.boundary) rule.boundary = Decision::offload;
    }
    const auto decisions = simulator::resolve(index.trace(), all_leave);
    if (!decisions) return decisions.error();
    std::vector<bool> named;
    for (const SavedDecision& each : decisions->saved) {
      named.push_back(each.rule >= 0 || each.decision == Decision::offload);
    }
    return named;
  }

  [[nodiscard]] static std::string rule_of(const SavedDecision& decision) {
    return decision.rule < 0 ? "/recompute" : "/saved/" + std::to_string(decision.rule);
  }

  Status add_saved(const simulator::StepIndex& index) {
    const Trace& trace = index.trace();
    const auto named = named_saved(index);
    if (!named) return named.error();
    const auto decisions = simulator::resolve(trace, plan_);
    if (!decisions) return decisions.error();
    std::map<StorageId, SavedId> first;  // that is named
    for (std::size_t s = 0; s < trace.saved.size(); ++s) {
      const SavedDecision& decision = decisions->saved[s];
      const std::string& site = trace.string(trace.saved.site[s]);
      const StorageId storage = trace.saved.storage[s];
      if (index.is_of_segment(SavedId(s))) {
        pins_.made_again_.insert(site);
        continue;
      }
      if (!(*named)[s] || !storage.valid()) continue;
      if (simulator::pre_existing(trace, storage)) {
        if (decision.decision == Decision::keep) continue;
        return bad_pin("'" + site + "' is a saved parameter or input: a search never moves that",
                       rule_of(decision), "pin the layer under \"parameters\"");
      }
      if (decision.copy_out != CopyMode::lane || decision.copy_in != CopyMode::lane) {
        return bad_pin("a search copies on the lanes alone", rule_of(decision),
                       "leave copy_out and copy_in out");
      }
      const auto [at, is_new] = first.try_emplace(storage, SavedId(s));
      const SavedDecision& other = decisions->saved[at->second.index()];
      if (!is_new && !says_the_same(decision, other)) {
        return bad_pin("'" + site + "' and '" + site_of(trace, at->second) +
                           "' are one storage, and two decisions are pinned about it",
                       rule_of(decision), "say the same of both (" + rule_of(other) + ")");
      }
      pins_.saved_[site] = decision;
    }
    pins_.storages_ = static_cast<std::int64_t>(first.size());
    return check_that_they_leave(index, first);
  }

  [[nodiscard]] static const std::string& site_of(const Trace& trace, SavedId saved) {
    return trace.string(trace.saved.site[saved.index()]);
  }

  [[nodiscard]] Status check_that_they_leave(const simulator::StepIndex& index,
                                             const std::map<StorageId, SavedId>& pinned) const {
    const Trace& trace = index.trace();
    simulator::Decisions decisions;
    decisions.saved.resize(trace.saved.size());
    for (auto& [saved, decision] : pins_.offloads_in(index)) {
      decisions.saved[saved.index()] = decision;
    }
    const simulator::Movement movement = simulator::group_offloads(index, decisions);
    std::set<StorageId> leave;
    for (const simulator::Tenant& tenant : movement.tenants) leave.insert(tenant.storage);
    for (const auto& [storage, saved] : pinned) {
      const SavedDecision& decision = pins_.saved_.at(site_of(trace, saved));
      if (decision.decision != Decision::offload || leave.count(storage) > 0) continue;
      std::string why = "it cannot leave";
      for (const simulator::LoweringNote& note : movement.notes) {
        if (trace.saved.storage[note.saved.index()] == storage) why = note.text;
      }
      return bad_pin("'" + site_of(trace, saved) + "' is pinned to leave: " + why,
                     rule_of(decision), "keep it, or leave it out");
    }
    return Unit{};
  }

  // What one layer's storages say; they are decided about together.
  Status add_layer(Moves what, LayerId layer, Choice choice, const std::string& pointer) {
    const auto [at, is_new] = pins_.layers_.try_emplace({what, layer}, choice);
    if (is_new || at->second == choice) return Unit{};
    return is_one(layer, pointer);
  }

  [[nodiscard]] Error is_one(LayerId layer, const std::string& pointer) const {
    const std::string name = layer_name(recording_, layer);
    return bad_pin("a search decides about '" + name + "' with all layers inside it as one",
                   pointer, "pin '" + name + "' as a whole");
  }

  // `rule_of`: by storage, the rule that names it; `choice` of what is named.
  template <class ChoiceOf>
  Status add_layers(Moves what, const std::vector<LayerId>& layers,
                    const std::vector<std::int32_t>& rule_of, const std::string& pointer,
                    const ChoiceOf& choice) {
    std::map<LayerId, std::pair<std::int32_t, std::string>> stay;  // those with a reason
    std::map<LayerId, bool> can_leave;
    for (std::size_t s = 0; s < layers.size(); ++s) {
      if (!layers[s].valid()) continue;
      const std::int32_t rule = rule_of[s];
      const std::string at = pointer + "/" + std::to_string(std::max(rule, 0));
      if (rule < 0) {
        if (pins_.layers_.count({what, layers[s]}) > 0) return is_one(layers[s], pointer);
        unnamed_.insert({what, layers[s]});
        continue;
      }
      if (unnamed_.count({what, layers[s]}) > 0) return is_one(layers[s], at);
      if (Status status = add_layer(what, layers[s], choice(s), at); !status) return status;
      const std::string& reason = recorded_.model_state_uses().reason_to_stay(StorageId(s));
      can_leave[layers[s]] = can_leave[layers[s]] || reason.empty();
      if (!reason.empty()) stay.try_emplace(layers[s], rule, reason);
    }
    for (const auto& [layer, why] : stay) {
      if (can_leave[layer] || pins_.layers_.at({what, layer}) == Choice::keep) continue;
      return bad_pin("'" + layer_name(recording_, layer) + "' is pinned to leave: " + why.second,
                     pointer + "/" + std::to_string(why.first), "leave it out");
    }
    return Unit{};
  }

  Status add_parameters() {
    if (!plan_.parameters || plan_.parameters->shards.empty()) return Unit{};
    const auto parameters = simulator::resolve_parameters(recording_, *plan_.parameters);
    if (!parameters) return parameters.error();
    return add_layers(Moves::parameters, streaming_layers(recording_), parameters->shard_of,
                      "/parameters/shards",
                      [&](std::size_t s) { return choice_of(parameters->mode_of(StorageId(s))); });
  }

  Status add_gradients() {
    if (plan_.gradients.empty()) return Unit{};
    const auto gradients = simulator::resolve_gradients(recording_, plan_.gradients);
    if (!gradients) {
      // Those of updates in backward are there just where the host does these: they go with them.
      const auto updated = simulator::unroll(recording_, pins_.structure_);
      if (!updated || !simulator::resolve_gradients(updated->trace(), plan_.gradients)) {
        return gradients.error();
      }
      return Unit{};
    }
    const auto rules = first_rules(recording_, plan_.gradients, [&](simulator::GradientRule rule) {
      rule.place = simulator::GradientPlace::host;
      const auto named = simulator::resolve_gradients(recording_, {rule});
      return named ? named->at_home : std::vector<bool>();
    });
    std::vector<LayerId> layers = streaming_layers_of_gradients(recording_);
    const std::vector<LayerId> can_be_named = simulator::layers_of_gradients(recording_);
    for (std::size_t s = 0; s < layers.size(); ++s) {
      if (!can_be_named[s].valid()) layers[s] = LayerId();
    }
    return add_layers(Moves::gradients, layers, rules, "/gradients", [&](std::size_t s) {
      return gradients->at_home[s] ? Choice::always : Choice::keep;
    });
  }

  // Where a rule is about both the state and the update, they go together.
  Status add_optimizer() {
    if (plan_.optimizer.empty()) return Unit{};
    const auto optimizer = simulator::resolve_optimizer(recording_, plan_.optimizer);
    if (!optimizer) return optimizer.error();
    const auto named_by = [&](simulator::StatePlace place, auto member) {
      return first_rules(recording_, plan_.optimizer, [&, place, member](auto rule) {
        rule.state = place;
        const auto named = simulator::resolve_optimizer(recording_, {rule});
        return named ? (*named).*member : std::vector<bool>();
      });
    };
    if (Status status = add_updates(*optimizer); !status) return status;
    // What is named and not for the host is for the device, also where it has no state.
    const std::vector<LayerId> layers = streaming_layers(recording_);
    const std::vector<std::int32_t> named =
        named_by(simulator::StatePlace::host, &simulator::OptimizerDecisions::updated_on_host);
    std::set<LayerId> on_device;
    for (std::size_t s = 0; s < layers.size(); ++s) {
      const bool is_one = layers[s].valid() && named[s] >= 0;
      if (is_one && pins_.on_host_.count(layers[s]) == 0) on_device.insert(layers[s]);
    }
    std::vector<LayerId> of_state = streaming_layers_of_state(recording_);
    for (LayerId& layer : of_state) {
      if (layer.valid() && pins_.on_host_.count(layer) > 0) layer = LayerId();
    }
    for (const LayerId layer : of_state) on_device.erase(layer);
    for (const LayerId layer : on_device) {
      pins_.layers_[{Moves::optimizer_state, layer}] = Choice::keep;
    }
    return add_layers(
        Moves::optimizer_state, of_state,
        named_by(simulator::StatePlace::stream, &simulator::OptimizerDecisions::state_streams),
        "/optimizer",
        [&](std::size_t s) { return optimizer->state_streams[s] ? Choice::always : Choice::keep; });
  }

  Status add_updates(const simulator::OptimizerDecisions& optimizer) {
    if (optimizer.updated_on_host.empty()) return Unit{};
    const std::vector<StorageId>& updated = pins_.structure_.host_updates;
    const std::vector<LayerId> layers = streaming_layers(recording_);
    const std::vector<LayerId> of_updated = simulator::layers_of_updated_parameters(recording_);
    const simulator::DeviceUpdates updates(recorded_);
    std::map<LayerId, std::string> cannot;
    for (std::size_t s = 0; s < layers.size(); ++s) {
      if (!layers[s].valid() || !of_updated[s].valid()) continue;
      const auto known = pins_.on_host_.find(layers[s]);
      const bool is_on_host = optimizer.updated_on_host[s];
      if (known != pins_.on_host_.end() && known->second != is_on_host) {
        return is_one(layers[s], "/optimizer");
      }
      pins_.on_host_[layers[s]] = is_on_host;
      if (!is_on_host) continue;
      const bool can = std::find(updated.begin(), updated.end(), StorageId(s)) != updated.end();
      if (can) {
        cannot[layers[s]].clear();
      } else {
        cannot.try_emplace(layers[s], updates.reason_to_stay(StorageId(s)));
      }
    }
    std::erase_if(pins_.on_host_, [](const auto& each) { return !each.second; });
    // A plan asks the host for all that it can, and the rest stays.
    for (const auto& [layer, why] : cannot) {
      if (why.empty() || !updated.empty()) continue;
      return bad_pin("the host cannot update '" + layer_name(recording_, layer) + "': " + why,
                     "/optimizer", "leave it out");
    }
    return Unit{};
  }

  const simulator::StepIndex& recorded_;
  const Trace& recording_;
  Plan plan_;
  Pins pins_;
  std::set<Layer> unnamed_;
};

Result<std::shared_ptr<const Pins>> Pins::make(const simulator::StepIndex& recorded,
                                               const Plan& plan) {
  if (is_empty(plan)) return std::shared_ptr<const Pins>();
  return Maker(recorded, plan).run();
}

std::int64_t Pins::count() const {
  return storages_ + static_cast<std::int64_t>(structure_.ops.size() + structure_.recompute.size() +
                                               layers_.size() + on_host_.size());
}

simulator::Structure Pins::with_structure(simulator::Structure structure) const {
  const auto add = [](const auto& more, auto& to) {
    for (const auto& each : more) {
      if (std::find(to.begin(), to.end(), each) == to.end()) to.push_back(each);
    }
  };
  add(structure_.recompute, structure.recompute);
  add(structure_.ops, structure.ops);
  add(structure_.host_updates, structure.host_updates);
  std::sort(structure.ops.begin(), structure.ops.end());
  return structure;
}

bool Pins::is_part_of(const simulator::Structure& structure) const {
  const simulator::Structure both = with_structure(structure);
  return both.recompute.size() == structure.recompute.size() &&
         both.ops.size() == structure.ops.size() &&
         both.host_updates.size() == structure.host_updates.size();
}

const SavedDecision* Pins::of(const simulator::StepIndex& index, StorageId storage) const {
  for (const SavedId saved : index.saved_of(storage)) {
    const auto at = saved_.find(index.trace().string(index.trace().saved.site[saved.index()]));
    if (at != saved_.end()) return &at->second;
  }
  return nullptr;
}

std::optional<Choice> Pins::of(Moves what, LayerId layer) const {
  const auto at = layers_.find({what, layer});
  return at == layers_.end() ? std::nullopt : std::optional(at->second);
}

bool Pins::decides(Moves what) const {
  return std::any_of(layers_.begin(), layers_.end(),
                     [&](const auto& each) { return each.first.first == what; });
}

bool Pins::offloads() const {
  return std::any_of(saved_.begin(), saved_.end(),
                     [](const auto& each) { return each.second.decision == Decision::offload; });
}

bool Pins::moves_nothing() const {
  return structure_.empty() && !offloads() &&
         std::all_of(layers_.begin(), layers_.end(),
                     [](const auto& each) { return each.second == Choice::keep; });
}

bool Pins::can_hold_in(const simulator::StepIndex& index) const {
  const Trace& trace = index.trace();
  std::set<StringId> there;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    if (!index.is_of_segment(SavedId(s)) && names(trace.string(trace.saved.site[s]))) {
      there.insert(trace.saved.site[s]);
    }
  }
  return there.size() == saved_.size();
}

std::vector<std::pair<SavedId, SavedDecision>> Pins::offloads_in(
    const simulator::StepIndex& index) const {
  std::vector<std::pair<SavedId, SavedDecision>> all;
  for (const StorageId storage : storages_in(index)) {
    SavedDecision decision = *of(index, storage);
    if (decision.decision != Decision::offload) continue;
    decision.rule = -1;
    for (const SavedId saved : index.saved_of(storage)) all.emplace_back(saved, decision);
  }
  return all;
}

std::set<StorageId> Pins::storages_in(const simulator::StepIndex& index) const {
  const Trace& trace = index.trace();
  std::set<StorageId> storages;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId storage = trace.saved.storage[s];
    if (!storage.valid() || index.is_of_segment(SavedId(s))) continue;
    if (names(trace.string(trace.saved.site[s]))) storages.insert(storage);
  }
  return storages;
}

bool Pins::hold_in(const simulator::StepIndex& index, simulator::Decisions& decisions) const {
  if (!can_hold_in(index)) return false;
  for (const StorageId storage : storages_in(index)) {
    for (const SavedId saved : index.saved_of(storage)) decisions.saved[saved.index()] = {};
  }
  for (auto& [saved, decision] : offloads_in(index)) decisions.saved[saved.index()] = decision;
  const Trace& trace = index.trace();
  const auto parameters = streaming_layers(trace);
  const auto state = streaming_layers_of_state(trace);
  const auto gradients = streaming_layers_of_gradients(trace);
  const auto is_so = [](const std::vector<bool>& leaves, std::size_t s) {
    return s < leaves.size() && leaves[s] ? Choice::always : Choice::keep;
  };
  const auto agrees = [&](Moves what, LayerId layer, Choice choice) {
    const std::optional<Choice> pinned = layer.valid() ? of(what, layer) : std::nullopt;
    return !pinned || *pinned == choice;
  };
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (!agrees(Moves::parameters, parameters[s],
                choice_of(decisions.parameters.mode_of(StorageId(s)))) ||
        !agrees(Moves::optimizer_state, state[s], is_so(decisions.optimizer.state_streams, s)) ||
        !agrees(Moves::gradients, gradients[s], is_so(decisions.gradients.at_home, s))) {
      return false;
    }
  }
  return true;
}

std::shared_ptr<const Pins> Pins::that_keep() const {
  Pins keep = *this;
  std::erase_if(keep.saved_,
                [](const auto& each) { return each.second.decision == Decision::offload; });
  std::erase_if(keep.layers_, [](const auto& each) { return each.second != Choice::keep; });
  return std::make_shared<const Pins>(std::move(keep));
}

std::string Pins::conflict_with(const Pins& other, const Trace& recording) const {
  for (const auto& [site, decision] : saved_) {
    const auto at = other.saved_.find(site);
    const bool differs = at != other.saved_.end() && !says_the_same(at->second, decision);
    if (differs || other.made_again_.count(site) > 0) return site;
  }
  for (const auto& [site, decision] : other.saved_) {
    if (made_again_.count(site) > 0) return site;
  }
  for (const auto& [layer, choice] : layers_) {
    const auto at = other.layers_.find(layer);
    const bool differs = at != other.layers_.end() && at->second != choice;
    const bool is_state = layer.first == Moves::optimizer_state;
    if (differs || (is_state && other.on_host_.count(layer.second) > 0)) {
      return layer_name(recording, layer.second);
    }
  }
  for (const auto& [layer, is_on_host] : on_host_) {
    if (other.of(Moves::optimizer_state, layer)) return layer_name(recording, layer);
  }
  return "";
}

Plan joined_rules(const std::vector<Plan>& plans) {
  Plan all;
  const auto add = [](const auto& more, auto& to) {
    to.insert(to.end(), more.begin(), more.end());
  };
  std::vector<simulator::StreamMode> modes;
  for (const Plan& plan : plans) {
    add(plan.saved, all.saved);
    add(plan.recompute, all.recompute);
    add(plan.gradients, all.gradients);
    add(plan.optimizer, all.optimizer);
    add(plan.micro_batches, all.micro_batches);
    if (!all.budget.automatic) all.budget.automatic = plan.budget.automatic;
    if (!plan.parameters) continue;
    if (!all.parameters) all.parameters.emplace();
    for (std::size_t shard = 0; shard < plan.parameters->shards.size(); ++shard) {
      all.parameters->shards.push_back(plan.parameters->shards[shard]);
      modes.push_back(plan.parameters->stream.of(shard));
    }
  }
  if (!modes.empty()) all.parameters->stream = simulator::StreamModes(std::move(modes));
  return all;
}

}  // namespace stowage::planner
