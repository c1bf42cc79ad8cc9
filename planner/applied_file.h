// A plan that was read from a file, on the recording that it is for.
#pragma once

#include <memory>
#include <string>

#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::planner {

// What a plan's file says of its replay.
[[nodiscard]] simulator::Predicted predicted_of(const simulator::ReplayResult& result);

// A plan on a recording: the step that it makes of it, and its schedule there.
struct AppliedFile {
  simulator::Structure structure;
  std::shared_ptr<const simulator::StepIndex> index;  // refers to the recording
  simulator::Lowering lowering;
};
// unroll() and lower(); the plan's budget is in bytes (resolve_budget()), and `recording` must
// outlive the result. Errors: theirs, in `plan_file`.
[[nodiscard]] Result<AppliedFile> apply_file(const Trace& recording, const simulator::Plan& plan,
                                             const std::string& plan_file);

}  // namespace stowage::planner
