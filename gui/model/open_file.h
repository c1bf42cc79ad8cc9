// Opening a file, whatever kind it is: a trace, a plan with the trace it was made for, what a run
// measured. All of the work, the first replay too, so that it can be done on another thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/job_runner.h"
#include "gui/model/run_result_json.h"
#include "gui/model/simulated.h"
#include "gui/model/step_picture.h"
#include "traces/result.h"

namespace stowage::gui {

struct Opened {
  TracePtr trace;
  SimulatedPtr simulated;
  StepPicturePtr planned;
  StepPicturePtr recorded;
  std::optional<RunResult> measured;
};

// A plan's trace is the open one when that has the plan's fingerprint, else `for.trace_file`
// beside the plan; a run's plan and trace are looked for where the command was given them and
// beside the result. A trace alone is replayed with nothing decided. Errors: bad_input (no such
// file, not a file of ours, a trace that is not there, with what to do), `interrupted`.
// Cost: that of load_trace(), StepIndex and two replays, and two views; progress in these steps.
[[nodiscard]] Result<Opened> open_file(const std::string& path, const TracePtr& open_trace,
                                       const JobContext& job);

// Several files at once, in whatever order: traces first, then plans, then what runs measured, each
// on what the one before it opened. What is shown is what the last one gives. One that cannot be
// opened does not keep the others from it.
struct OpenedFiles {
  std::optional<Opened> opened;    // none: no file could be opened
  std::vector<std::string> files;  // that were opened, in this order
  // What is shown is not all that was asked for; may be empty, and is where `error` says it.
  std::string note;
  std::optional<Error> error;  // of all files that cannot be opened, and the note
};
[[nodiscard]] OpenedFiles open_files(const std::vector<std::string>& paths,
                                     const TracePtr& open_trace, const JobContext& job);

// A plan that is in memory, on the step in its micro-batches.
[[nodiscard]] Result<Opened> open_plan(const TracePtr& trace, PlanStatePtr plan,
                                       const JobContext& job);

// The same for a trace that is in memory.
[[nodiscard]] Result<Opened> open_trace(Trace trace, const std::string& path,
                                        const std::string& sha256, const JobContext& job);

}  // namespace stowage::gui
