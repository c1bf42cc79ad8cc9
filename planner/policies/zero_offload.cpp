// DeepSpeed's ZeRO-Offload on one device (zero_optimization: {stage: 2, offload_optimizer: {device:
// cpu}}): gradients go to the host as they arrive, the optimizer's state lives there and the host
// steps, and the new weights come back. Saved tensors stay.
//
// Approximated: each parameter is updated as soon as its gradient is there, beside backward, not in
// one step behind it; weights come back as late as the link allows, not all at once; gradients are
// not collected into buckets; the host's arithmetic is that of the run's own optimizer.
#include <algorithm>

#include "planner/policies/policies.h"
#include "simulator/plan/optimizer_rules.h"

namespace stowage::planner::builtin {

PolicyInfo zero_offload_info() {
  return {
      "zero_offload", "Gradients go to the host as they arrive, which updates the parameters", {}};
}

Rules zero_offload_rules(const simulator::StepIndex& index, const Options& /*options*/) {
  PolicyRules rules{{keep_the_rest()}, {}, {}};
  const auto layers = simulator::layers_of_updated_parameters(index.trace());
  const bool any = std::any_of(layers.begin(), layers.end(), [](LayerId l) { return l.valid(); });
  if (!any) {
    rules.notes.emplace_back("the step has no gradients, so the host has nothing to update");
    return rules;
  }
  rules.optimizer = {{"*", simulator::StatePlace::host}};
  rules.gradients = {{"*", simulator::GradientPlace::host}};
  return rules;
}

}  // namespace stowage::planner::builtin
