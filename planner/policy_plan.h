// A policy's rules as a plan without a budget: what a replay of the policy starts from.
#pragma once

#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::planner {

struct PolicyPlan {
  simulator::Plan plan;  // for the trace's saved tensors, in the usual memory of its device
  std::vector<std::string> notes;
};

// Errors and cost: those of policy_rules().
[[nodiscard]] Result<PolicyPlan> policy_plan(const simulator::StepIndex& index,
                                             const std::string& spec);

}  // namespace stowage::planner
