#include "profiler/torch/record.h"

#include <utility>

#include "profiler/torch/recording.h"

namespace stowage::profiler {

Result<Trace> record(executor::Device& device, const StepFunctions& step, Run run,
                     const RecordSettings& settings) {
  RecordingPasses passes;
  passes.clean = [&](const PassOptions& options) { return clean_here(device, step, options); };
  if (settings.timing != nullptr) {
    passes.timing = [&](const PassOptions& options) {
      return settings.timing->run(device, step, options);
    };
  }
  passes.open = [&]() -> Result<RecordedStep> {
    return RecordedStep{&device, step, std::move(run)};
  };
  passes.warn = settings.warn;
  return record_passes(passes, settings.passes);
}

}  // namespace stowage::profiler
