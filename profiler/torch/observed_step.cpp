#include "profiler/torch/observed_step.h"

#include <c10/util/Exception.h>

#include <exception>

#include "executor/backward_thread.h"
#include "executor/saved_tensor_engine.h"

namespace stowage::profiler {

namespace {

// Whatever happens in the first step, the history does not go on behind it.
class SetupEnd {
 public:
  explicit SetupEnd(executor::Device& device) : device_(device) {}
  SetupEnd(const SetupEnd&) = delete;
  SetupEnd& operator=(const SetupEnd&) = delete;
  ~SetupEnd() { device_.end_setup(); }

 private:
  executor::Device& device_;
};

}  // namespace

Result<RawPass> observe(executor::Device& device, const StepFunctions& step, RecordMode mode,
                        std::int64_t index, const RecordOptions& options) {
  if (step.prepare) step.prepare(index);
  StepRecorder recorder(device, mode, options);  // ends the step by itself when it throws
  recorder.begin_step(step.registered());
  try {
    step.step();
  } catch (const c10::Error&) {
    // Of what was not there, which is not why.
    if (const std::exception_ptr why = recorder.paging_failure()) std::rethrow_exception(why);
    throw;
  }
  if (const std::exception_ptr why = recorder.paging_failure()) std::rethrow_exception(why);
  return recorder.end_step();
}

Status warm_up(executor::Device& device, const StepFunctions& step, const PassOptions& options,
               const RecordOptions& recording) {
  executor::install_saved_tensor_engine();
  executor::take_backward_workspace(device.torch_device());
  const SetupEnd setup_end(device);
  for (std::int64_t i = 0; i < options.warmup; ++i) {
    if (options.everything_offloaded || !recording.again.empty()) {
      device.begin_first_step();
      const RecordMode mode =
          options.everything_offloaded ? RecordMode::offload_all : RecordMode::keep;
      const Result<RawPass> pass = observe(device, step, mode, i, recording);
      if (!pass) return pass.error();
    } else {
      if (step.prepare) step.prepare(i);
      device.begin_first_step();
      step.step();
    }
    device.end_setup();
  }
  return Unit{};
}

}  // namespace stowage::profiler
