#include "planner/policy_plan.h"

#include <utility>

#include "planner/budget.h"
#include "planner/policy.h"

namespace stowage::planner {

Result<PolicyPlan> policy_plan(const simulator::StepIndex& index, const std::string& spec) {
  auto rules = policy_rules(index, spec);
  if (!rules) return rules.error();
  PolicyPlan made{{}, std::move(rules->notes)};
  simulator::Plan& plan = made.plan;
  plan.target.fingerprint = index.trace().fingerprint;
  plan.saved = std::move(rules->saved);
  plan.recompute = std::move(rules->recompute);
  plan.parameters = std::move(rules->parameters);
  plan.optimizer = std::move(rules->optimizer);
  plan.gradients = std::move(rules->gradients);
  plan.micro_batches = std::move(rules->micro_batches);
  plan.budget.automatic = rules->automatic;
  plan.placement = usual_placement(index.trace());
  return made;
}

}  // namespace stowage::planner
