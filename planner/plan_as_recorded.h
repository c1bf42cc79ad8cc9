// The planner for one recording of the step; make_plan() asks it for each (planner.h).
#pragma once

#include <optional>

#include "planner/planner.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::planner {

// make_plan() of the step in the micro-batches that it was recorded in. With `beats` a search that
// cannot find a shorter step than that is not made: PlanKind::not_found without a plan, unless the
// step fits as it is or none can be within the budget. Floor, bound and `kept_from` are there all
// the same; with `beats` 0 they are all that is asked for.
[[nodiscard]] Result<PlanOutcome> plan_as_recorded(const simulator::StepIndex& index,
                                                   const PlanRequest& request,
                                                   std::optional<Nanoseconds> beats = {});

// Some gradient of this recording can leave.
[[nodiscard]] bool has_gradients(const simulator::StepIndex& index);

// Gap and bound of an outcome and of its plan, by its bound and prediction.
void set_gap(PlanOutcome& outcome);

// Proven: no plan keeps a budget below it. What is reserved is never less than what is active, and
// whole pages.
[[nodiscard]] Bytes lowest_budget(Bytes floor, simulator::PeakKind on);

}  // namespace stowage::planner
