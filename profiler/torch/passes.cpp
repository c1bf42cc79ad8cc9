#include "profiler/torch/passes.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "executor/saved_tensor_engine.h"

namespace stowage::profiler {

namespace {

using Clock = std::chrono::steady_clock;

void prepare(const StepFunctions& step, std::int64_t index) {
  if (step.prepare) step.prepare(index);
}

void warm_up(const StepFunctions& step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    prepare(step, i);
    step.step();
  }
}

Result<RawPass> observe(executor::Device& device, const StepFunctions& step, RecordMode mode,
                        std::int64_t index) {
  prepare(step, index);
  StepRecorder recorder(device, mode);  // ends the step by itself when step.step() throws
  recorder.begin_step(step.registered());
  step.step();
  return recorder.end_step();
}

}  // namespace

Result<CleanPass> run_clean_pass(executor::Device& device, const StepFunctions& step,
                                 const PassOptions& options) {
  executor::install_saved_tensor_engine();
  warm_up(step, options.warmup);
  CleanPass clean;
  std::vector<Nanoseconds> times;
  for (std::int64_t i = 0; i < options.steps; ++i) {
    prepare(step, options.warmup + i);
    device.synchronize();
    device.reset_peak();
    const Clock::time_point begin = Clock::now();
    step.step();
    device.synchronize();
    times.push_back(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
    const executor::MemoryStats memory = device.memory();
    if (i > 0 && memory.peak_requested != clean.peak_requested) {
      return Error{ErrorCode::bad_input,
                   "two steps peaked at " + std::to_string(clean.peak_requested) + " and " +
                       std::to_string(memory.peak_requested) + " requested bytes",
                   "", "", "a step must do the same each time; more warm-up steps may help"};
    }
    clean.peak_requested = memory.peak_requested;
    clean.peak_active = memory.peak_active;
    clean.peak_reserved = memory.peak_reserved;
  }
  std::sort(times.begin(), times.end());
  clean.step_ns = times.empty() ? 0 : times[times.size() / 2];
  return clean;
}

Result<ObservedPasses> run_observed_passes(executor::Device& device, const StepFunctions& step,
                                           const PassOptions& options) {
  executor::install_saved_tensor_engine();
  warm_up(step, options.warmup);
  ObservedPasses passes;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, options.structure); ++i) {
    Result<RawPass> pass = observe(device, step, RecordMode::keep, options.warmup + i);
    if (!pass) return pass.error();
    if (i > 0) {
      auto& times = passes.more_times.emplace_back();
      for (const RawEvent& event : passes.structure.events) times.push_back(event.time_ns);
    }
    passes.structure = std::move(pass).value();
  }
  Result<RawPass> pass = observe(device, step, RecordMode::offload_all,
                                 options.warmup + std::max<std::int64_t>(1, options.structure));
  if (!pass) return pass.error();
  passes.offload_all = std::move(pass).value();
  return passes;
}

}  // namespace stowage::profiler
