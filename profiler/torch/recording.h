// One recording of a step: which passes there are, in which order, what is run again when the host
// was busy, and what becomes of them. Where a pass runs is the caller's: all in one process
// (record.h), or clean and timing pass in processes of their own (`stowage profile`), since a step
// is slower in a process that observes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "profiler/assembly/raw_pass.h"
#include "profiler/torch/passes.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

// What is measured unobserved.
struct CleanResults {
  bool on_gpu = false;  // the step ran on one, so there is device activity to record
  CleanPass clean;
  Calibration calibration;
};

// A step that can be run in this process, and what its trace should say about it: model, batch, ..
struct RecordedStep {
  executor::Device* device = nullptr;
  StepFunctions functions;
  Run run;
  // That it runs in: the trace says so, and plans for it do.
  std::vector<simulator::Structure::Parts> micro_batches{};
};

// The passes, each with the options that it shall have (options.clean_step_ns and
// everything_offloaded are known when it runs), called in this order.
struct RecordingPasses {
  // Clean steps and calibration. A step that runs out of memory is no error:
  // CleanPass::out_of_memory.
  std::function<Result<CleanResults>(const PassOptions&)> clean;
  // Steps with the GPU's activity; called when there is a GPU. May be empty: the trace then has no
  // kernel times.
  std::function<Result<TimingPass>(const PassOptions&)> timing;
  // The step of the remaining passes, which run in this process.
  std::function<Result<RecordedStep>()> open;
  // Times that `clean` may be called again, when the timing pass shows that the host was busy.
  int clean_again = 0;
  // Gets one line whenever something could not be recorded that a trace should have.
  std::function<void(const std::string& line)> warn;
};

// Fills in of the run: source, steps, warm-up, threads and determinism; uuid and date where they
// are empty. Errors: of the passes and of assemble(). Exceptions of the step and of
// options.progress pass through, one that the calibration of waits runs out of memory with excepted
// (a warning).
[[nodiscard]] Result<Trace> record_passes(const RecordingPasses& passes, PassOptions options);

// `clean` in this process. `own_memory` is called between clean steps and calibration, whose
// buffers are its own and not the step's; may be empty. Exceptions of the step pass through, except
// out of memory in a clean step.
[[nodiscard]] Result<CleanResults> clean_here(executor::Device& device, const StepFunctions& step,
                                              const PassOptions& options,
                                              const std::function<void()>& own_memory = {});

}  // namespace stowage::profiler
