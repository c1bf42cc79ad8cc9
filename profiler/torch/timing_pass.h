// The timing pass: steps recorded together with the GPU's own activity records. In a process of its
// own, since a step runs slower in a process whose GPU was recorded.
#pragma once

#include <memory>

#include "executor/device/device.h"
#include "profiler/torch/passes.h"
#include "traces/result.h"

namespace stowage::profiler {

class TimingRecorder {
 public:
  // Better made before anything of CUDA is called in this process, so ahead of the device; where
  // it is not, say so (ActivityRecorder::create()). Errors (environment): a build without CUPTI;
  // ActivityRecorder::create().
  [[nodiscard]] static Result<std::unique_ptr<TimingRecorder>> create(
      bool cuda_has_started = false);
  virtual ~TimingRecorder() = default;
  TimingRecorder(const TimingRecorder&) = delete;
  TimingRecorder& operator=(const TimingRecorder&) = delete;

  // Runs warm-up, one more step while recording, then up to options.timing steps, or more when
  // the host was busy (QuietSteps), which says which of them is the pass. Errors: a step's own,
  // what the recording did not get (check_sentinels()).
  [[nodiscard]] virtual Result<TimingPass> run(executor::Device& device, const StepFunctions& step,
                                               const PassOptions& options) = 0;

 protected:
  TimingRecorder() = default;
};

}  // namespace stowage::profiler
