// A Plan as JSON (docs/plan-format.md, simulator/plan/plan.schema.json). Writing is byte-stable:
// keys in the order of the reference, two-space indent, one rule a line, so plans diff well, and
// for every text that plan_to_json wrote, plan_to_json(plan_from_json(text)) is the same text.
#pragma once

#include <string>
#include <string_view>

#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::simulator {

// Total: any bytes give a Plan or an Error (bad_input, with `file` and a JSON pointer), never a
// crash; size and nesting are limited to kPlanBounds (traces/json_bounds.h). Unknown keys are
// errors that name the nearest known key: a typo must not be silent. Parts of the format that
// cannot be run yet (the optimizer's step on the host, "@mb=") are refused as "not supported yet".
// A percentage in `budget` that stands without its bytes leaves PlanBudget::device empty and keeps
// the text; planner::resolve_budget gives it a value. Cost: O(text).
[[nodiscard]] Result<Plan> plan_from_json(std::string_view text, const std::string& file);

// Ends with a newline. Strings that are not UTF-8 are written with U+FFFD in place of the bad
// bytes.
[[nodiscard]] std::string plan_to_json(const Plan& plan);

}  // namespace stowage::simulator
