// From a trace and a budget to a plan: stowage::planner::make_plan() on a
// stowage::simulator::StepIndex of the trace; a plan and its JSON (docs/planner.md,
// docs/plan-format.md).
#pragma once

#include "planner/budget.h"
#include "planner/pin_text.h"
#include "planner/planner.h"
#include "planner/policy_plan.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"
#include "simulator/plan/plan_json.h"
#include "simulator/plan/target_check.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/step_index.h"
#include "traces/named_value.h"
#include "traces/size_text.h"
