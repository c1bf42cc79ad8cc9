// The passes of a recording that run in a process of their own: started by `profile`, and the
// hidden verbs that they are.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/torch/run_request.h"
#include "cli/torch/step_under_plan.h"
#include "profiler/assembly/raw_pass.h"
#include "profiler/torch/recording.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

struct RecordingRequest {
  RunRequest run;
  std::int64_t warmup = 3;
  bool quick = false;  // as few steps as a recording needs, whatever else runs on the host
  std::optional<Bytes> memory_limit = {};
  bool everything_offloaded = false;    // the step runs out of memory with everything kept
  Nanoseconds clean_step_ns = 0;        // for the timing pass; 0: not known
  std::optional<PlanFiles> under = {};  // what that plan computes again runs again
};

// What `quick` makes of the options of each pass.
void make_quick(profiler::PassOptions& options);

// Clean steps and calibration (verb clean-pass). A step that runs out of memory is no error:
// CleanPass::out_of_memory.
[[nodiscard]] Result<profiler::CleanResults> clean_in_child(const RecordingRequest& request);

// Steps with the GPU's activity (verb timing-pass).
[[nodiscard]] Result<profiler::TimingPass> timing_in_child(const RecordingRequest& request);

// The whole recording of a request with micro-batches (verb divided-step).
[[nodiscard]] Result<Trace> record_divided(const RecordingRequest& request);

}  // namespace stowage::cli
