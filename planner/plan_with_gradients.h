// What is planned for one recording where gradients may leave: first without that, then with it,
// and the better of the two. So allowing it makes no plan slower, and what needs none of it is
// planned as if there were none.
#pragma once

#include <optional>

#include "planner/planner.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::planner {

// Some gradient of this recording can leave.
[[nodiscard]] bool has_gradients(const simulator::StepIndex& index);

// plan_as_recorded() where the request does not allow it or nothing can leave. Floor and bound are
// those of all that is allowed. The second search is left out where the bound proves that nothing
// is faster. Cost: up to twice that of plan_as_recorded().
[[nodiscard]] Result<PlanOutcome> plan_with_gradients(const simulator::StepIndex& index,
                                                      const PlanRequest& request,
                                                      std::optional<Nanoseconds> beats = {});

}  // namespace stowage::planner
