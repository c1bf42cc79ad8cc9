#include "profiler/torch/recording.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <utility>

#include "executor/device/first_line.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/calibrate.h"
#include "profiler/torch/step_hooks.h"
#include "profiler/torch/woken_launch.h"
#include "simulator/step/unroll.h"

namespace stowage::profiler {

namespace {

std::string now_iso8601() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// Random, version 4.
std::string new_uuid() {
  std::random_device random;
  const char* const digits = "0123456789abcdef";
  std::string uuid = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx";
  for (char& c : uuid) {
    if (c == 'x') c = digits[random() % 16];
  }
  return uuid;
}

// The clean pass; none that fits when a step runs out of memory.
Result<CleanPass> clean_or_none(executor::Device& device, const StepFunctions& step,
                                const PassOptions& options) {
  try {
    return run_clean_pass(device, step, options);
  } catch (const c10::OutOfMemoryError&) {
    CleanPass none;
    none.out_of_memory = true;
    return none;
  }
}

// A step that skipped its update is none to plan from.
Status check_updated(const Trace& trace) {
  const auto& kinds = trace.events.kind;
  const bool updates =
      std::find(kinds.begin(), kinds.end(), EventKind::parameter_update_begin) != kinds.end();
  if (trace.run.grad_scaler.empty() || updates) return Unit{};
  return Error{ErrorCode::condition,
               "the gradients of the recorded step overflow, so it updates nothing", "", "",
               "give --grad-scaler a smaller init, or more --warmup steps"};
}

class Recorder {
 public:
  Recorder(const RecordingPasses& passes, PassOptions options)
      : passes_(passes), options_(std::move(options)) {}

  Result<Trace> run() {
    if (Status status = record_clean(); !status) return status.error();
    if (Status status = record_timing(); !status) return status.error();
    Result<RecordedStep> opened = passes_.open();
    if (!opened) return opened.error();
    const RecordedStep step = std::move(opened).value();
    Result<ObservedPasses> observed = run_observed_passes(*step.device, step.functions, options_);
    if (!observed) return observed.error();
    recording_.structure = std::move(observed->structure);
    recording_.more_times = std::move(observed->more_times);
    recording_.offload_all = std::move(observed->offload_all);
    recording_.setup = std::move(observed->setup);
    recording_.adopted = observed->adopted;
    describe(step);
    Result<Trace> trace = assemble(recording_);
    if (!trace) return trace.error();
    if (Status status = check_updated(*trace); !status) return status.error();
    simulator::set_recorded_parts(step.micro_batches, *trace);
    // Nobody plans from a step that computes again.
    if (!options_.again.empty()) return trace;
    if (Status status = calibrate_step(step, *trace); !status) return status.error();
    return trace;
  }

 private:
  void warn(const std::string& line) const {
    if (passes_.warn) passes_.warn(line);
  }

  Status record_clean() {
    Result<CleanResults> results = passes_.clean(options_);
    if (!results) return results.error();
    take(*results);
    on_gpu_ = results->on_gpu;
    options_.clean_step_ns = recording_.clean.step_ns;
    if (recording_.clean.out_of_memory && !options_.again.empty()) {
      return Error{ErrorCode::condition,
                   "the step runs out of memory with everything kept, and what runs again is not "
                   "recorded with everything offloaded",
                   "", "", "record it where it fits: a larger --memory-limit, a smaller batch"};
    }
    if (recording_.clean.out_of_memory) {
      options_.everything_offloaded = true;
      warn(
          "the step runs out of memory with everything kept: it is recorded with every saved "
          "tensor leaving at once and with model state on the host until an op needs it, and the "
          "trace has no clean step time");
    }
    return Unit{};
  }

  void take(const CleanResults& results) {
    recording_.clean = results.clean;
    recording_.calibration = results.calibration;
  }

  Status record_timing() {
    if (!on_gpu_) return Unit{};
    if (!passes_.timing) {
      warn("the GPU's own activity is not recorded: plans will have no kernel times");
      return Unit{};
    }
    options_.report("steps with the GPU's activity");
    Result<TimingPass> timing = passes_.timing(options_);
    if (!timing) return timing.error();
    recording_.timing = std::move(timing).value();
    // More than one is for the median of event times, and those are the timing pass's.
    options_.structure = 1;
    // A timing pass takes longer than the clean step: one that does not saw a quieter host.
    const Nanoseconds slow = recording_.timing->step_ns + recording_.timing->step_ns / 200;
    for (int i = 0; i < passes_.clean_again && recording_.clean.step_ns > slow; ++i) {
      options_.report("clean steps again: the host was busy");
      const Result<CleanResults> quieter = passes_.clean(options_);
      // The recording is good without it.
      if (!quieter || quieter->clean.out_of_memory) break;
      if (quieter->clean.step_ns < recording_.clean.step_ns) take(*quieter);
    }
    return Unit{};
  }

  void describe(const RecordedStep& step) {
    Run run = step.run;
    run.source = "recorded";
    run.steps = 1;
    run.warmup_steps = options_.warmup;
    run.threads = at::get_num_threads();
    run.deterministic = at::globalContext().deterministicAlgorithms();
    if (run.uuid.empty()) run.uuid = new_uuid();
    if (run.created.empty()) run.created = now_iso8601();
    recording_.run = std::move(run);
    recording_.env.torch = TORCH_VERSION;
    step.device->describe(recording_.env);
    if (recording_.timing) recording_.env.cupti = recording_.timing->activities.library;
  }

  // In this process, whose steps the trace's structure is of.
  Status calibrate_step(const RecordedStep& step, Trace& trace) {
    const std::int64_t next_batch = options_.warmup + options_.structure + 1;
    options_.report("launching behind waits");
    try {
      const Status woken = calibrate_woken_launch(*step.device, step.functions, next_batch, trace);
      if (!woken) return woken;
    } catch (const c10::OutOfMemoryError& error) {
      // The step fits, but not with a copy's buffer beside it.
      warn("how slowly the step is launched behind waits is not known: out of memory: " +
           executor::first_line(error.what_without_backtrace()));
    }
    options_.report("what hooks cost");
    return calibrate_hooks(*step.device, step.functions, next_batch, trace);
  }

  const RecordingPasses& passes_;
  PassOptions options_;
  RawRecording recording_;
  bool on_gpu_ = false;
};

}  // namespace

Result<Trace> record_passes(const RecordingPasses& passes, PassOptions options) {
  return Recorder(passes, std::move(options)).run();
}

Result<CleanResults> clean_here(executor::Device& device, const StepFunctions& step,
                                const PassOptions& options,
                                const std::function<void()>& own_memory) {
  CleanResults results;
  results.on_gpu = device.torch_device().is_cuda();
  Result<CleanPass> clean = clean_or_none(device, step, options);
  if (!clean) return clean.error();
  results.clean = *clean;
  if (own_memory) own_memory();
  options.report("calibration of the copy lanes");
  CalibrationOptions calibration;
  if (results.on_gpu) {
    calibration.repetitions = 14;  // 60 ms each
  } else {
    // Copies are the processor's own, and nobody's answer shall wait for them. Beyond 16 MiB they
    // are hardly slower: 64 MiB at 6 to 9 GB/s, 16 MiB at 7 to 10.
    calibration.repetitions = 3;
    calibration.largest = Bytes{16} << 20;
  }
  if (!clean->out_of_memory) calibration.step = step.step;
  if (step.prepare) {
    calibration.prepare = [&step, index = options.warmup + options.steps]() mutable {
      step.prepare(index++);
    };
  }
  calibration.updates = step.updates;
  Result<Calibration> lanes = calibrate(device, calibration);
  if (!lanes) return lanes.error();
  results.calibration = std::move(lanes).value();
  return results;
}

}  // namespace stowage::profiler
