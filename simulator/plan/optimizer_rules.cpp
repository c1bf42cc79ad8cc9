#include "simulator/plan/optimizer_rules.h"

#include <utility>

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

Result<OptimizerDecisions> resolve_optimizer(const Trace& trace,
                                             const std::vector<OptimizerRule>& rules) {
  OptimizerDecisions decisions;
  if (rules.empty()) return decisions;
  std::vector<LeavingRule> leaving;
  for (const OptimizerRule& rule : rules) {
    leaving.push_back({rule.layer, rule.state == StatePlace::stream});
  }
  auto streams = resolve_leaving(trace, layers_of_optimizer_state(trace), leaving,
                                 {"optimizer state", "/optimizer"});
  if (!streams) return std::move(streams).error();
  decisions.state_streams = std::move(streams).value();
  return decisions;
}

std::vector<OptimizerRule> to_optimizer_rules(const Trace& trace,
                                              const OptimizerDecisions& decisions) {
  std::vector<OptimizerRule> rules;
  for (LeavingRule& rule :
       to_leaving_rules(trace, layers_of_optimizer_state(trace), decisions.state_streams)) {
    rules.push_back({std::move(rule.layer), rule.leaves ? StatePlace::stream : StatePlace::device});
  }
  return rules;
}

}  // namespace stowage::simulator
