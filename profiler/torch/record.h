// record(): a user's own training loop recorded in its own process: clean steps, calibration of the
// copy lanes, on a GPU steps with its activity, observed steps, assembled into a Trace
// (recording.h). `stowage profile` does the same with clean and timing steps in processes of their
// own, which is better for step times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/timing_pass.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

struct RecordSettings {
  PassOptions passes{};
  // Records kernel times, on a GPU: TimingRecorder::create(), called ahead of the device. From then
  // on the process's steps are slower, for good; where that matters, record in one run of the
  // program (save_trace()) and train in another. Without one the trace has no kernel times.
  TimingRecorder* timing = nullptr;
  // The step's tails run in these (executor/tail.h). A recording of the step in micro-batches is
  // one for `divided` of the trace of the step at once.
  std::vector<simulator::Structure::Parts> micro_batches{};
  // Gets one line whenever something could not be recorded that a trace should have. May be empty.
  std::function<void(const std::string& line)> warn{};
};

// Runs the step about 2 * warmup + steps + structure + 1 times, and on a GPU 27 times more to see
// what hooks cost and how slowly it is launched behind waits, and with settings.timing about
// warmup + timing more; a long step less often. `run` is what the trace should say about it (model,
// batch, ..); threads and determinism are filled in. A step that runs out of memory with everything
// kept is recorded with every saved tensor leaving at once. Other exceptions of the step, and those
// of progress, pass through; nothing stays behind.
[[nodiscard]] Result<Trace> record(executor::Device& device, const StepFunctions& step,
                                   Run run = {}, const RecordSettings& settings = {});

}  // namespace stowage::profiler
