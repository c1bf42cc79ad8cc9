#include "profiler/torch/record.h"

#include <string>
#include <utility>
#include <vector>

#include "executor/division.h"
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
    return RecordedStep{&device, step, std::move(run), settings.micro_batches};
  };
  passes.warn = settings.warn;
  executor::Division division(settings.micro_batches);
  executor::InstalledDriver divided;
  if (!settings.micro_batches.empty()) divided = executor::InstalledDriver(division);
  Result<Trace> trace = record_passes(passes, settings.passes);
  if (!trace) return trace;
  if (const std::vector<std::string> unasked = division.unasked(); !unasked.empty()) {
    return Error{ErrorCode::bad_input,
                 "the step has no tail named '" + unasked.front() + "' that runs in micro-batches",
                 "", "", "name one that stowage::tail() is called with"};
  }
  return trace;
}

}  // namespace stowage::profiler
