#include "cli/chosen_plan.h"

#include <iterator>
#include <utility>

#include "cli/console.h"
#include "cli/option_values.h"
#include "cli/plan_file.h"
#include "planner/budget.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/policy_plan.h"
#include "simulator/machine/calibration_settings.h"
#include "simulator/plan/target_check.h"

namespace stowage::cli {
namespace {

Result<planner::PolicyPlan> plan_of(const ChosenPlan& choice, const simulator::StepIndex& index,
                                    const std::string& sha256) {
  planner::PolicyPlan chosen;
  if (choice.plan_file) {
    Result<simulator::Plan> plan = load_plan(*choice.plan_file);
    if (!plan) return plan.error();
    if (const Status fits = simulator::check_target(*plan, *choice.plan_file, index.trace());
        !fits) {
      return fits.error();
    }
    chosen.plan = std::move(plan).value();
    const Status budget =
        resolve_plans_budget(index.trace(), sha256, *choice.plan_file, chosen.plan);
    if (!budget) return budget.error();
  } else {
    Result<planner::PolicyPlan> made =
        planner::policy_plan(index, choice.policy.value_or("resident"));
    if (!made) return made.error();
    chosen = std::move(made).value();
  }
  if (choice.placement) {
    const Result<simulator::PlacementMode> placement = placement_named(*choice.placement);
    if (!placement) return placement.error();
    planner::move_to(*placement, chosen.plan);
  }
  return chosen;
}

}  // namespace

std::string ChosenPlan::title() const {
  return plan_file ? "plan " + *plan_file : "policy " + policy.value_or("resident");
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

Status apply_settings(const std::vector<std::string>& settings, Trace& trace) {
  for (const std::string& setting : settings) {
    if (const Status set = simulator::apply_setting(trace.calibration, setting); !set)
      return set.error();
  }
  if (!settings.empty()) set_calibration(trace, Calibration(trace.calibration));
  return Unit{};
}

Result<ChosenReplay> replay_choice(const ChosenPlan& choice, const simulator::StepIndex& index,
                                   const std::string& sha256) {
  Result<planner::PolicyPlan> chosen = plan_of(choice, index, sha256);
  if (!chosen) return chosen.error();
  Result<report::Simulation> simulation =
      report::simulate(index, chosen->plan, choice.plan_file.value_or(""));
  if (!simulation) {
    Error error = std::move(simulation).error();
    if (choice.plan_file) return error;
    // A policy's rules are in no file.
    return planner::of_policy(choice.policy.value_or("resident"), std::move(error));
  }
  ChosenReplay replay{std::move(chosen->plan), std::move(simulation).value()};
  std::vector<std::string>& notes = replay.simulation.notes;
  notes.insert(notes.begin(), std::make_move_iterator(chosen->notes.begin()),
               std::make_move_iterator(chosen->notes.end()));
  return replay;
}

}  // namespace stowage::cli
