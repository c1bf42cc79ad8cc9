// A step recorded now.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/torch/recording_child.h"
#include "cli/torch/run_request.h"
#include "cli/torch/step_under_plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// The passes that observe in this process, once in it; the others in children. `under`: of the
// request's plan, or null. `argv`: what the trace says of the command.
[[nodiscard]] Result<Trace> record_here(const RecordingRequest& request, const StepUnderPlan* under,
                                        const Args& argv, const Console& console);

// Of a recording that has micro-batches, too, the one with this fingerprint; else itself. For plans
// that were made from a recording in micro-batches alone.
[[nodiscard]] Trace with_fingerprint(Trace recorded, const std::string& fingerprint);

// What `stowage profile` records of it, in a process of its own. Errors: its own.
[[nodiscard]] Result<Trace> record_in_child(const RunRequest& request);

}  // namespace stowage::cli
