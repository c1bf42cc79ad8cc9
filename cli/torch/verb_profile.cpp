#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>

#include "cli/output_check.h"
#include "cli/torch/child_process.h"
#include "cli/torch/results_json.h"
#include "cli/torch/session.h"
#include "cli/torch/torch_verbs.h"
#include "cli/words.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/calibrate.h"
#include "profiler/torch/passes.h"
#include "traces/size_text.h"
#include "traces/trace_file.h"

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

Result<CleanResults> clean_in_child(const RunRequest& request, std::int64_t warmup) {
  Result<ScratchFile> scratch = ScratchFile::create();
  if (!scratch) return scratch.error();
  std::vector<std::string> arguments = {"clean-pass"};
  for (std::string& word : request.arguments()) arguments.push_back(std::move(word));
  arguments.insert(arguments.end(), {"--warmup", std::to_string(warmup), "--result-fd",
                                     std::to_string(scratch->descriptor())});
  if (Status status = run_child(arguments); !status) return status.error();
  Result<std::string> text = scratch->content();
  if (!text) return text.error();
  return clean_results_from_json(*text);
}

Result<Trace> record(const RunRequest& request, std::int64_t warmup, const Args& argv,
                     const Console& console) {
  profiler::RawRecording recording;
  if (console.progress()) console.note("clean steps and calibration of the copy lanes ..");
  Result<CleanResults> clean = clean_in_child(request, warmup);
  if (!clean) return clean.error();
  recording.clean = clean->clean;
  recording.calibration = clean->calibration;

  if (console.progress()) console.note("observed steps ..");
  Result<std::unique_ptr<Session>> session = Session::create(request);
  if (!session) return session.error();
  profiler::PassOptions options;
  options.warmup = warmup;
  Result<profiler::ObservedPasses> observed = guarded([&]() -> Result<profiler::ObservedPasses> {
    return profiler::run_observed_passes((*session)->device(), (*session)->functions(), options);
  });
  if (!observed) return observed.error();
  recording.structure = std::move(observed->structure);
  recording.more_times = std::move(observed->more_times);
  recording.offload_all = std::move(observed->offload_all);
  recording.run = (*session)->run();
  recording.run.uuid = new_uuid();
  recording.run.created = now_iso8601();
  recording.run.warmup_steps = warmup;
  recording.run.argv = argv;
  recording.env = (*session)->environment();
  return profiler::assemble(recording);
}

std::string profile_text(const Trace& trace, const std::string& file) {
  std::string text = "recorded " + run_line(trace) + "\n";
  text += "  step time     " + format_time(trace.overhead.clean.step_ns) + "\n";
  text += "  peak          " + exact_bytes(trace.peaks.requested.front()) + " requested\n";
  text += "  offload all   " + exact_bytes(trace.overhead.offload_all.peak_requested) +
          " when every saved tensor leaves at once\n";
  const auto outermost = std::count(trace.ops.parent.begin(), trace.ops.parent.end(), OpId());
  text += "  saved tensors " + with_commas(static_cast<std::int64_t>(trace.saved.size())) + " in " +
          count_of(static_cast<std::int64_t>(trace.layers.size()) - 1, "layer") + "\n";
  text += "  ops           " + with_commas(outermost) + ", " +
          with_commas(static_cast<std::int64_t>(trace.ops.size())) + " with those that they call\n";
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
  RunFlags flags;
  line.positional("MODEL", model, "a built-in model with its options (see stowage models)");
  line.option("-o,--output", "FILE", output, "the trace, .json or .json.gz; - is stdout", true);
  flags.declare(line);
  line.option("--warmup", "N", warmup, "steps before anything is recorded (default 3)");
  for (const char* name : {"--micro-batches", "--batch-sweep", "--no-fit"}) {
    line.future_option(name);
  }
  line.detail(
      "Runs the step unobserved (time, peak, speed of the copy lanes), observed, and once\n"
      "with every saved tensor leaving at once; the passes must agree event by event.");
  line.example("stowage profile gpt2:layers=6,width=256,seq=256,vocab=1024 --batch 4 -o t.json.gz");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (warmup && (*warmup < 1 || *warmup > 10000)) {
      return usage_error("--warmup " + std::to_string(*warmup) + " is not allowed",
                         "a whole number from 1 to 10000");
    }
    if (console.json && *output == "-") {
      return usage_error("--json and -o - would both write to stdout", "give -o a file");
    }
    if (Status status = check_output("--output", output, {}); !status) return status.error();
    Result<RunRequest> request = make_request(*model, flags);
    if (!request) return request.error();
    Args argv = {"stowage", "profile"};
    argv.insert(argv.end(), args.begin(), args.end());
    Result<Trace> trace = record(*request, warmup.value_or(3), argv, console);
    if (!trace) return trace.error();
    if (Status status = save_trace(*output, *trace); !status) return status.error();
    if (*output == "-") return 0;
    if (console.json) {
      console.out << profile_json(*trace, *output);
    } else {
      console.out << profile_text(*trace, *output);
    }
    return 0;
  });
}

int verb_clean_pass(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("clean-pass", "Runs a step unobserved and calibrates the copy lanes");
  std::optional<std::string> model;
  std::optional<std::int64_t> warmup;
  std::optional<std::int64_t> result_descriptor;
  RunFlags flags;
  line.positional("MODEL", model, "a built-in model with its options");
  line.option("--warmup", "N", warmup, "steps before anything is recorded");
  line.option("--result-fd", "N", result_descriptor, "where the results go");
  flags.declare(line);
  return run_verb(line, args, out, err, [&](Console&) -> Result<int> {
    if (!result_descriptor) return usage_error("--result-fd is missing");
    Result<RunRequest> request = make_request(*model, flags);
    if (!request) return request.error();
    Result<std::unique_ptr<Session>> session = Session::create(*request);
    if (!session) return session.error();
    profiler::PassOptions options;
    options.warmup = warmup.value_or(3);
    CleanResults results;
    Result<profiler::CleanPass> clean = guarded([&]() -> Result<profiler::CleanPass> {
      return profiler::run_clean_pass((*session)->device(), (*session)->functions(), options);
    });
    if (!clean) return clean.error();
    results.clean = *clean;
    Result<Calibration> calibration =
        guarded([&]() -> Result<Calibration> { return profiler::calibrate((*session)->device()); });
    if (!calibration) return calibration.error();
    results.calibration = *calibration;
    if (Status status =
            write_descriptor(static_cast<int>(*result_descriptor), clean_results_to_json(results));
        !status) {
      return status.error();
    }
    return 0;
  });
}

}  // namespace stowage::cli
