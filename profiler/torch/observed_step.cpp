#include "profiler/torch/observed_step.h"

#include "executor/saved_tensor_engine.h"

namespace stowage::profiler {

Result<RawPass> observe(executor::Device& device, const StepFunctions& step, RecordMode mode,
                        std::int64_t index, const RecordOptions& options) {
  if (step.prepare) step.prepare(index);
  StepRecorder recorder(device, mode, options);  // ends the step by itself when it throws
  recorder.begin_step(step.registered());
  step.step();
  return recorder.end_step();
}

Status warm_up(executor::Device& device, const StepFunctions& step, const PassOptions& options) {
  executor::install_saved_tensor_engine();
  device.end_setup();
  for (std::int64_t i = 0; i < options.warmup; ++i) {
    if (options.everything_offloaded) {
      const Result<RawPass> pass = observe(device, step, RecordMode::offload_all, i);
      if (!pass) return pass.error();
      continue;
    }
    if (step.prepare) step.prepare(i);
    step.step();
  }
  return Unit{};
}

}  // namespace stowage::profiler
