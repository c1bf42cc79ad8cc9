#include "simulator/plan/gradient_rules.h"

#include <utility>

#include "simulator/plan/leaving_rules.h"

namespace stowage::simulator {

std::vector<LayerId> layers_of_gradients(const Trace& trace) {
  const Storages& storages = trace.storages;
  std::vector<LayerId> layers(storages.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    if (storages.storage_class[s] != StorageClass::gradient) continue;
    if (storages.free_event[s].valid()) continue;
    const StorageId parameter = storages.parameter[s];
    if (parameter.valid()) layers[s] = storages.layer[parameter.index()];
  }
  return layers;
}

Result<GradientDecisions> resolve_gradients(const Trace& trace,
                                            const std::vector<GradientRule>& rules) {
  GradientDecisions decisions;
  if (rules.empty()) return decisions;
  std::vector<LeavingRule> leaving;
  for (const GradientRule& rule : rules) {
    leaving.push_back({rule.layer, rule.place == GradientPlace::host});
  }
  auto at_home = resolve_leaving(trace, layers_of_gradients(trace), leaving,
                                 {"gradients left at the step's end", "/gradients"});
  if (!at_home) return std::move(at_home).error();
  decisions.at_home = std::move(at_home).value();
  return decisions;
}

std::vector<GradientRule> to_gradient_rules(const Trace& trace,
                                            const GradientDecisions& decisions) {
  std::vector<GradientRule> rules;
  for (LeavingRule& rule : to_leaving_rules(trace, layers_of_gradients(trace), decisions.at_home)) {
    rules.push_back(
        {std::move(rule.layer), rule.leaves ? GradientPlace::host : GradientPlace::device});
  }
  return rules;
}

}  // namespace stowage::simulator
