// What `execute` and `verify` need besides a plan: its trace, the schedule, and the prediction as
// this version of the simulator makes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/torch/run_request.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

struct PlanInputs {
  simulator::Plan plan;
  std::string plan_file;
  std::shared_ptr<const Trace> trace;
  std::string trace_file;  // empty when the step was recorded again
  RunRequest request;
  simulator::Structure structure;  // of the step that the schedule is for
  simulator::Schedule schedule;
  simulator::Predicted predicted;
  // What PyTorch's caching allocator would reserve for the plan; -1: nothing says, or it runs
  // there.
  Bytes caching_reserved = -1;
  // Whether the allocator's replay says exactly what active and reserved bytes will be, and then
  // how often memory is taken from the driver behind the first step.
  bool allocator_exact = false;
  bool active_varies = false;  // as the replay says
  std::int64_t later_segments = 0;
  std::vector<std::string> warnings;  // e.g. the stored prediction differs
};

// The trace comes from `trace_file`, else from where the plan says, else the step is recorded again
// (in a child process). No file that is read may be an output among `files`. `model` and `flags`
// may repeat what the plan says, not contradict it. `placement` takes the place of the plan's.
[[nodiscard]] Result<PlanInputs> load_plan_inputs(const std::string& plan_file,
                                                  const std::optional<std::string>& trace_file,
                                                  const std::optional<std::string>& model,
                                                  std::optional<simulator::PlacementMode> placement,
                                                  const RunFlags& flags, CommandFiles& files);

}  // namespace stowage::cli
