// record(): a user's own training loop recorded in its own process: clean steps, calibration of the
// copy lanes, observed steps, assembled into a Trace. `stowage profile` does the same with the
// clean steps in a process of their own, which is better for step times.
#pragma once

#include "executor/device/device.h"
#include "profiler/torch/passes.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

// Runs the step about 2 * warmup + steps + structure + 1 times, and on a GPU 27 times more to see
// what hooks cost and how slowly it is launched behind waits; a long step less often. `run` is what
// the trace should say about it (model, batch, ..); threads and determinism are filled in.
// Exceptions of the step and of options.progress pass through; nothing stays behind.
[[nodiscard]] Result<Trace> record(executor::Device& device, const StepFunctions& step,
                                   Run run = {}, const PassOptions& options = {});

}  // namespace stowage::profiler
