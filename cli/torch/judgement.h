// What `verify` and `execute` demand of a run under a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/torch/results_json.h"
#include "simulator/plan/plan.h"

namespace stowage::cli {

struct Demands {
  simulator::PlanBudget budget;
  bool tolerance_given = false;  // --rtol: results may differ within it
  bool moves = false;            // the plan takes something away
  // See PlanInputs.
  bool allocator_exact = false;
  bool active_varies = false;
  std::int64_t later_segments = 0;
  bool placed = false;  // on planned memory of a GPU
};

struct Judgement {
  std::vector<std::string> failures;  // one line for each demand that is not met
  std::vector<std::string> remarks;   // what was seen and not judged, and why
};

// The demands: results bitwise (or within the tolerance; or, of a model that does not repeat
// itself, each tensor within its own noise, which digests do not tell), losses that are numbers,
// the recorded step, no parameter stored beside the plan in a steady step, requested and host bytes
// as predicted and the former alike in every steady step, both budgets. On a device with an
// allocator's counters also: active within 0.1 % of the prediction, active and reserved alike in
// every steady step (unless the replay says that active varies), no host memory pinned behind the
// first step, and no more memory taken from the driver there than the replay takes. Where that
// replay is no more than an estimate, active is remarked on; so is memory taken from the driver
// when the plan moves nothing. On planned memory reserved is as predicted, to the byte.
// With another allocator than the one that predictions are of (MeasuredRun::other_allocator) what
// it has active and reserved is remarked on, but in planned memory. `v.failures` is not looked at.
[[nodiscard]] Judgement judge(const Verification& v, const Demands& demands);

// The budgets alone, which `execute` demands too: one line for each that the run is above.
[[nodiscard]] std::vector<std::string> budget_failures(const MeasuredRun& run,
                                                       const simulator::PlanBudget& budget);

}  // namespace stowage::cli
