#include "simulator/plan/optimizer_rules.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "simulator/plan/layer_patterns.h"
#include "simulator/plan/leaving_rules.h"

namespace stowage::simulator {

std::vector<LayerId> layers_of_optimizer_state(const Trace& trace) {
  const Storages& storages = trace.storages;
  std::vector<LayerId> layers(storages.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    if (storages.storage_class[s] != StorageClass::optimizer_state) continue;
    const StorageId parameter = storages.parameter[s];
    if (parameter.valid()) layers[s] = storages.layer[parameter.index()];
  }
  return layers;
}

std::vector<LayerId> layers_of_updated_parameters(const Trace& trace) {
  const Storages& storages = trace.storages;
  std::vector<LayerId> layers(storages.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const StorageId parameter = storages.parameter[s];
    if (storages.storage_class[s] != StorageClass::gradient || !parameter.valid()) continue;
    layers[parameter.index()] = storages.layer[parameter.index()];
  }
  return layers;
}

Result<OptimizerDecisions> resolve_optimizer(const Trace& trace,
                                             const std::vector<OptimizerRule>& rules) {
  OptimizerDecisions decisions;
  if (rules.empty()) return decisions;
  std::vector<LeavingRule> leaving;
  std::vector<LeavingRule> at_home;
  const bool any_at_home = std::any_of(
      rules.begin(), rules.end(), [](const auto& rule) { return rule.state == StatePlace::host; });
  const std::vector<LayerId> of_updated = layers_of_updated_parameters(trace);
  for (const OptimizerRule& rule : rules) {
    const bool is_host = rule.state == StatePlace::host;
    // What has no state may be named to be no matter of the host.
    const bool is_not_for_host = any_at_home && rule.state == StatePlace::device &&
                                 resolve_leaving(trace, of_updated, {{rule.layer, true}}, {}).ok();
    leaving.push_back({rule.layer, rule.state == StatePlace::stream, is_host || is_not_for_host});
    at_home.push_back({rule.layer, is_host, !is_host});
  }
  auto streams = resolve_leaving(trace, layers_of_optimizer_state(trace), leaving,
                                 {"optimizer state", "/optimizer"});
  if (!streams) return std::move(streams).error();
  decisions.state_streams = std::move(streams).value();
  if (!any_at_home) return decisions;
  auto updated =
      resolve_leaving(trace, of_updated, at_home, {"parameters with gradients", "/optimizer"});
  if (!updated) return std::move(updated).error();
  decisions.updated_on_host = std::move(updated).value();
  return decisions;
}

namespace {

// Each layer by its name, the innermost ones first: says anything that rules can.
std::vector<OptimizerRule> one_a_layer(const Trace& trace, const OptimizerDecisions& decisions) {
  std::vector<std::optional<StatePlace>> place(trace.layers.size());
  const auto set = [&](const std::vector<LayerId>& layers, const std::vector<bool>& is_there,
                       StatePlace there) {
    for (std::size_t s = 0; s < layers.size(); ++s) {
      if (!layers[s].valid()) continue;
      auto& of = place[layers[s].index()];
      if (!is_there.empty() && is_there[s]) of = there;
      if (!of) of = StatePlace::device;
    }
  };
  set(layers_of_optimizer_state(trace), decisions.state_streams, StatePlace::stream);
  set(layers_of_updated_parameters(trace), decisions.updated_on_host, StatePlace::host);
  std::vector<OptimizerRule> rules;
  for (std::size_t l = place.size(); l-- > 0;) {
    if (!place[l]) continue;
    rules.push_back({as_pattern(trace.string(trace.layers.name[l]), Spelling::exact), *place[l]});
  }
  return rules;
}

// Where nothing of it is said, nothing is decided.
bool says(const std::vector<bool>& got, const std::vector<bool>& wanted) {
  const std::size_t rows = std::max(got.size(), wanted.size());
  for (std::size_t s = 0; s < rows; ++s) {
    if ((s < got.size() && got[s]) != (s < wanted.size() && wanted[s])) return false;
  }
  return true;
}

}  // namespace

std::vector<OptimizerRule> to_optimizer_rules(const Trace& trace,
                                              const OptimizerDecisions& decisions) {
  std::vector<OptimizerRule> rules;
  const auto add = [&](const std::vector<LayerId>& layers, const std::vector<bool>& leaves,
                       StatePlace place) {
    for (LeavingRule& rule : to_leaving_rules(trace, layers, leaves)) {
      rules.push_back({std::move(rule.layer), rule.leaves ? place : StatePlace::device});
    }
  };
  add(layers_of_updated_parameters(trace), decisions.updated_on_host, StatePlace::host);
  const bool any_at_home = !rules.empty();
  add(layers_of_optimizer_state(trace), decisions.state_streams, StatePlace::stream);
  if (!any_at_home) return rules;
  const auto says_it = [&] {
    const auto resolved = resolve_optimizer(trace, rules);
    return resolved && says(resolved->state_streams, decisions.state_streams) &&
           says(resolved->updated_on_host, decisions.updated_on_host);
  };
  if (says_it()) return rules;
  rules = one_a_layer(trace, decisions);
  STOWAGE_ASSERT(says_it() && "rules by layer cannot say what the host updates");
  return rules;
}

}  // namespace stowage::simulator
