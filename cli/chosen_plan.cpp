#include "cli/chosen_plan.h"

#include <utility>

#include "cli/console.h"
#include "cli/option_values.h"
#include "cli/plan_file.h"
#include "planner/budget.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "simulator/machine/calibration_settings.h"

namespace stowage::cli {
namespace {

Result<simulator::Plan> plan_of_policy(const simulator::StepIndex& index,
                                       const std::string& policy) {
  auto rules = planner::policy_rules(index, policy);
  if (!rules) return rules.error();
  simulator::Plan plan;
  plan.target.fingerprint = index.trace().fingerprint;
  plan.saved = std::move(rules->saved);
  plan.recompute = std::move(rules->recompute);
  plan.parameters = std::move(rules->parameters);
  plan.budget.automatic = rules->automatic;
  plan.placement = planner::usual_placement(index.trace());
  return plan;
}

}  // namespace

std::string ChosenPlan::title() const {
  return plan_file ? "plan " + *plan_file : "policy " + policy.value_or("resident");
}

Error ChosenPlan::named(Error error) const {
  return plan_file ? error : planner::of_policy(policy.value_or("resident"), std::move(error));
}

Status check_choice(const ChosenPlan& choice, const std::string& trace_file) {
  if (choice.plan_file && choice.policy) {
    return usage_error("--plan and --policy exclude each other");
  }
  if (choice.plan_file == "-" && trace_file == "-") {
    return usage_error("the trace and the plan cannot both come from stdin");
  }
  return Unit{};
}

Status apply_settings(const ChosenPlan& choice, Trace& trace) {
  for (const std::string& setting : choice.settings) {
    if (const Status set = simulator::apply_setting(trace.calibration, setting); !set)
      return set.error();
  }
  return Unit{};
}

Result<simulator::Plan> plan_of(const ChosenPlan& choice, const simulator::StepIndex& index) {
  Result<simulator::Plan> plan = choice.plan_file
                                     ? load_plan(*choice.plan_file)
                                     : plan_of_policy(index, choice.policy.value_or("resident"));
  if (!plan) return plan.error();
  if (choice.plan_file) {
    const Status fits = check_target(*plan, *choice.plan_file, index.trace());
    if (!fits) return fits.error();
  }
  if (choice.placement) {
    const Result<simulator::PlacementMode> placement = placement_named(*choice.placement);
    if (!placement) return placement.error();
    plan->placement = *placement;
  }
  if (const Status budget = planner::resolve_budget(index, *plan); !budget) {
    Error error = budget.error();
    error.file = choice.plan_file.value_or("");
    return error;
  }
  return plan;
}

}  // namespace stowage::cli
