#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>

#include "cli/torch/gpu_totals.h"
#include "cli/torch/model_error.h"
#include "cli/torch/recording_child.h"
#include "cli/torch/results_json.h"
#include "cli/torch/session.h"
#include "cli/torch/torch_verbs.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/step_hooks.h"
#include "profiler/torch/woken_launch.h"
#include "report/words.h"
#include "traces/size_text.h"
#include "traces/trace_json.h"
#include "traces/validate.h"

namespace stowage::cli {

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

constexpr int kMostCleanAgain = 2;

Result<Trace> record(RecordingRequest request, const Args& argv, const Console& console) {
  profiler::RawRecording recording;
  if (console.progress()) console.note("clean steps and calibration of the copy lanes ..");
  Result<CleanResults> clean = clean_in_child(request);
  if (!clean) return clean.error();
  recording.clean = clean->clean;
  recording.calibration = clean->calibration;
  if (clean->clean.out_of_memory) {
    request.everything_offloaded = true;
    console.warn(
        "the step runs out of memory with everything kept: it is recorded with every saved tensor "
        "leaving at once, and the trace has no clean step time");
  }
  if (clean->on_gpu) {
    if (console.progress()) console.note("steps with the GPU's activity ..");
    request.clean_step_ns = clean->clean.step_ns;
    Result<profiler::TimingPass> timing = timing_in_child(request);
    if (!timing) return timing.error();
    recording.timing = std::move(timing).value();
    // A timing pass takes longer than the clean step: one that does not saw a quieter host.
    const Nanoseconds slow = recording.timing->step_ns + recording.timing->step_ns / 200;
    for (int again = 0; again < kMostCleanAgain && recording.clean.step_ns > slow; ++again) {
      if (console.progress()) console.note("clean steps again: the host was busy ..");
      Result<CleanResults> quieter = clean_in_child(request);
      // The recording is good without it.
      if (!quieter || quieter->clean.out_of_memory) break;
      if (quieter->clean.step_ns >= recording.clean.step_ns) continue;
      recording.clean = quieter->clean;
      recording.calibration = quieter->calibration;
    }
  }

  if (console.progress()) console.note("observed steps ..");
  Result<std::unique_ptr<Session>> session = Session::create(request.run);
  if (!session) return session.error();
  if (request.memory_limit) (*session)->set_memory_limit(*request.memory_limit);
  profiler::PassOptions options;
  options.warmup = request.warmup;
  options.everything_offloaded = request.everything_offloaded;
  // More than one is for the median of event times, and those are the timing pass's.
  if (recording.timing) options.structure = 1;
  Result<profiler::ObservedPasses> observed = guarded([&]() -> Result<profiler::ObservedPasses> {
    return profiler::run_observed_passes((*session)->device(), (*session)->functions(), options);
  });
  if (!observed) return observed.error();
  recording.structure = std::move(observed->structure);
  recording.more_times = std::move(observed->more_times);
  recording.offload_all = std::move(observed->offload_all);
  recording.setup = std::move(observed->setup);
  recording.run = (*session)->run();
  recording.run.uuid = new_uuid();
  recording.run.created = now_iso8601();
  recording.run.warmup_steps = request.warmup;
  recording.run.argv = argv;
  recording.env = (*session)->environment();
  if (recording.timing) recording.env.cupti = recording.timing->activities.library;
  Result<Trace> trace = profiler::assemble(recording);
  if (!trace) return trace.error();
  // In this process, whose steps the trace's structure is of.
  const std::int64_t next_batch = options.warmup + options.structure + 1;
  executor::Device& device = (*session)->device();
  const profiler::StepFunctions functions = (*session)->functions();
  const Status woken = guarded([&]() -> Status {
    return profiler::calibrate_woken_launch(device, functions, next_batch, *trace);
  });
  if (!woken && woken.error().code != ErrorCode::condition) return woken.error();
  if (!woken) {  // the step fits, but not with a copy's buffer beside it
    console.warn("how slowly the step is launched behind waits is not known: " +
                 woken.error().message);
  }
  Status status = guarded(
      [&]() -> Status { return profiler::calibrate_hooks(device, functions, next_batch, *trace); });
  if (!status) return status.error();
  return trace;
}

// "+1.3 %"; a share of another number.
std::string percent(double share, int digits, bool sign) {
  char text[32];
  std::snprintf(text, sizeof text, sign ? "%+.*f %%" : "%.*f %%", digits, 100 * share);
  return text;
}

std::string gpu_text(const Trace& trace) {
  const GpuTotals totals = gpu_totals(trace);
  std::string text = "  GPU           " + report::count_of(totals.kernels, "kernel") + ", " +
                     report::with_commas(totals.copies + totals.memsets) + " copies and memsets, " +
                     format_time(totals.busy_ns) + " busy, " +
                     percent(totals.attributed, 2, false) + " of it attributed\n";
  text += "  timing pass   " + format_time(trace.overhead.timing.step_ns);
  if (totals.timing_overhead) {
    text += " (" + percent(*totals.timing_overhead, 1, true) + " over the clean step)";
  }
  text += ", " + report::count_of(trace.quality.dropped_records, "dropped record") + ", " +
          report::count_of(trace.clock.causality_violations, "clamped time") + ", " +
          report::count_of(static_cast<std::int64_t>(trace.syncs.size()), "wait") + " of the CPU\n";
  return text;
}

std::string profile_text(const Trace& trace, const std::string& file) {
  std::string text = "recorded " + report::run_line(trace) + "\n";
  const bool offloaded = trace.overhead.clean.step_ns == 0;
  text += "  step time     " +
          (offloaded ? "unknown: it does not fit with everything kept"
                     : format_time(trace.overhead.clean.step_ns)) +
          "\n";
  text += "  peak          " + report::exact_bytes(trace.peaks.requested.front()) + " requested\n";
  text += "  offload all   " + report::exact_bytes(trace.overhead.offload_all.peak_requested) +
          " when every saved tensor leaves at once\n";
  const auto outermost = std::count(trace.ops.parent.begin(), trace.ops.parent.end(), OpId());
  text += "  saved tensors " + report::with_commas(static_cast<std::int64_t>(trace.saved.size())) +
          " in " + report::count_of(static_cast<std::int64_t>(trace.layers.size()) - 1, "layer") +
          "\n";
  text += "  ops           " + report::with_commas(outermost) + ", " +
          report::with_commas(static_cast<std::int64_t>(trace.ops.size())) +
          " with those that they call\n";
  if (trace.gpu.size() > 0) text += gpu_text(trace);
  text += "  fingerprint   " + trace.fingerprint.substr(0, 23) + "..\n";
  text += "wrote " + file + "\n";
  return text;
}

}  // namespace

int verb_profile(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("profile", "Records one training step of a model into a trace");
  std::optional<std::string> model;
  std::optional<std::string> output;
  std::optional<std::int64_t> warmup;
  std::optional<std::string> memory_limit;
  RunFlags flags;
  line.positional(
      "MODEL", model,
      "a built-in model with its options (see stowage models), plugin:LIB.so or script:FILE.pt");
  line.output("-o,--output", "FILE", output, "the trace, .json or .json.gz; - is stdout", true);
  flags.declare(line);
  line.option("--warmup", "N", warmup, "steps before anything is recorded (default 3)");
  line.option("--memory-limit", "SIZE", memory_limit,
              "device memory that the step may use; one that needs more is recorded offloaded");
  for (const char* name : {"--micro-batches", "--batch-sweep", "--no-fit"}) {
    line.future_option(name);
  }
  line.detail(
      "Runs the step unobserved (time, peak, speed of the copy lanes), observed, and once\n"
      "with every saved tensor leaving at once; the passes must agree event by event. On a GPU\n"
      "also with the GPU's own records.");
  line.example("stowage profile gpt2:layers=6,width=256,seq=256,vocab=1024 --batch 4 -o t.json.gz");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (warmup && (*warmup < 1 || *warmup > 10000)) {
      return usage_error("--warmup " + std::to_string(*warmup) + " is not allowed",
                         "a whole number from 1 to 10000");
    }
    if (console.json && *output == "-") {
      return usage_error("--json and -o - would both write to stdout", "give -o a file");
    }
    Result<RunRequest> request = make_request(*model, flags, console.files);
    if (!request) return request.error();
    Args argv = {"stowage", "profile"};
    argv.insert(argv.end(), args.begin(), args.end());
    RecordingRequest recording{.run = std::move(request).value(), .warmup = warmup.value_or(3)};
    if (memory_limit) {
      Result<Bytes> limit = parse_size(*memory_limit);
      if (!limit) {
        return usage_error("--memory-limit " + *memory_limit + ": " + limit.error().message,
                           limit.error().hint);
      }
      recording.memory_limit = *limit;
    }
    const executor::ModelSpec spec = recording.run.spec;
    Result<Trace> trace = record(std::move(recording), argv, console);
    if (!trace) return of_model(trace.error(), *model, spec);
    // What every reader asks of it; a file that nobody can load is no recording.
    if (Status status = validate(*trace, "the recording"); !status) return status.error();
    if (Status status = write_output(console, *output, trace_to_json(*trace)); !status) {
      return status.error();
    }
    if (trace->gpu.size() > 0) {
      if (const std::string text = timing_warning(gpu_totals(*trace)); !text.empty()) {
        console.warn(text);
      }
    }
    if (*output == "-") return 0;
    if (console.json) {
      console.out << profile_json(*trace, *output);
    } else {
      console.out << profile_text(*trace, *output);
    }
    return 0;
  });
}

}  // namespace stowage::cli
