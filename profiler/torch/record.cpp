#include "profiler/torch/record.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include <utility>

#include "profiler/assembly/assemble.h"
#include "profiler/torch/calibrate.h"
#include "profiler/torch/step_hooks.h"
#include "profiler/torch/woken_launch.h"

namespace stowage::profiler {

Result<Trace> record(executor::Device& device, const StepFunctions& step, Run run,
                     const PassOptions& options) {
  RawRecording recording;
  Result<CleanPass> clean = run_clean_pass(device, step, options);
  if (!clean) return clean.error();
  recording.clean = *clean;
  options.report("calibration of the copy lanes");
  Result<Calibration> calibration = calibrate(device);
  if (!calibration) return calibration.error();
  recording.calibration = std::move(calibration).value();
  Result<ObservedPasses> observed = run_observed_passes(device, step, options);
  if (!observed) return observed.error();
  recording.structure = std::move(observed->structure);
  recording.more_times = std::move(observed->more_times);
  recording.offload_all = std::move(observed->offload_all);
  recording.setup = std::move(observed->setup);
  run.source = "recorded";
  run.steps = 1;
  run.warmup_steps = options.warmup;
  run.threads = at::get_num_threads();
  run.deterministic = at::globalContext().deterministicAlgorithms();
  recording.run = std::move(run);
  recording.env.torch = TORCH_VERSION;
  device.describe(recording.env);
  Result<Trace> trace = assemble(recording);
  if (!trace) return trace.error();
  const std::int64_t next_batch = options.warmup + options.structure + 1;
  options.report("launching behind waits");
  if (Status status = calibrate_woken_launch(device, step, next_batch, *trace); !status) {
    return status.error();
  }
  options.report("what hooks cost");
  if (Status status = calibrate_hooks(device, step, next_batch, *trace); !status) {
    return status.error();
  }
  return trace;
}

}  // namespace stowage::profiler
