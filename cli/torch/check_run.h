// The runs behind `check`: the step as it is now, recorded, and measured in a process of its own,
// plain or under a plan whose rules are lowered onto that recording.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/torch/measured_run.h"
#include "cli/torch/run_request.h"
#include "report/peak_content.h"
#include "simulator/plan/plan.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// The step that a plan was made for, as far as it and its trace say; flags may add to it, not
// contradict it, and `model` may name the same plugin or script elsewhere. Without --threads on the
// CPU device: the plan's, else 1, since the number changes bytes and machines differ in it. Errors:
// usage, bad_input (neither says a model).
[[nodiscard]] Result<RunRequest> check_request(const simulator::PlanTarget* plan,
                                               const std::string& plan_file,
                                               const std::optional<std::string>& model,
                                               RunFlags flags, CommandFiles& files);

// A plan's rules on a step that may have changed since: its fingerprint is not asked for.
struct AppliedPlan {
  simulator::Plan plan;  // its target is empty
  // Of the step that it makes of the recording, to which it refers.
  std::shared_ptr<const simulator::StepIndex> index;
  simulator::Schedule schedule;
  bool moves = false;  // anything
};
// `trace` must outlive it, and the plan's budget is in bytes. Errors: those of
// planner::apply_file(): the plan does not apply.
[[nodiscard]] Result<AppliedPlan> apply_plan(simulator::Plan plan, const std::string& plan_file,
                                             const Trace& trace);

// What is alive at the peak of the recorded step; `plan` null: nothing moves.
[[nodiscard]] report::PeakContent content_of(const Trace& trace, const AppliedPlan* plan);

// Runs `steps` steps in a child process (verb check-steps); `plan` and `trace` null: the plain
// step. Error: the child's; condition: the step needs more memory than there is.
[[nodiscard]] Result<MeasuredRun> measure_in_child(const RunRequest& request, std::int64_t steps,
                                                   const AppliedPlan* plan, const Trace* trace,
                                                   const std::vector<std::string>& progress);

}  // namespace stowage::cli
