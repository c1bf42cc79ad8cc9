#include "cli/torch/recording_child.h"

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/torch/child_process.h"
#include "cli/torch/micro_batches.h"
#include "cli/torch/ranks.h"
#include "cli/torch/recorded_step.h"
#include "cli/torch/results_json.h"
#include "cli/torch/session.h"
#include "cli/torch/torch_verbs.h"
#include "profiler/assembly/timing_pass_json.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/recording.h"
#include "profiler/torch/timing_pass.h"
#include "traces/trace_json.h"

namespace stowage::cli {

namespace {

// What the verb wrote into a file that only it and we know.
Result<std::string> run_verb_in_child(const char* verb, const RecordingRequest& request) {
  Result<ScratchFile> scratch = ScratchFile::create();
  if (!scratch) return scratch.error();
  std::vector<std::string> arguments = {verb};
  for (std::string& word : request.run.arguments()) arguments.push_back(std::move(word));
  arguments.insert(arguments.end(), {"--warmup", std::to_string(request.warmup), "--result-fd",
                                     std::to_string(scratch->descriptor())});
  if (request.memory_limit) {
    arguments.insert(arguments.end(), {"--memory-limit", std::to_string(*request.memory_limit)});
  }
  if (request.quick) arguments.emplace_back("--quick");
  if (request.everything_offloaded) arguments.emplace_back("--everything-offloaded");
  if (request.clean_step_ns > 0) {
    arguments.insert(arguments.end(), {"--clean-step", std::to_string(request.clean_step_ns)});
  }
  if (request.under) {
    arguments.insert(arguments.end(), {"--plan", request.under->plan});
    if (request.under->trace) {
      arguments.insert(arguments.end(), {"--trace", *request.under->trace});
    }
  }
  if (Status status = run_child(arguments); !status) return status.error();
  return scratch->content();
}

// The arguments of both verbs.
struct ChildArguments {
  std::optional<std::string> model;
  std::optional<std::int64_t> warmup;
  std::optional<std::int64_t> result_descriptor;
  std::optional<std::int64_t> memory_limit;
  std::optional<std::int64_t> clean_step_ns;
  std::optional<std::string> plan;
  std::optional<std::string> trace;
  bool everything_offloaded = false;
  bool quick = false;
  std::vector<std::string> micro_batches;
  RunFlags flags;

  void declare(CommandLine& line) {
    line.positional("MODEL", model, "a built-in model with its options");
    line.option("--warmup", "N", warmup, "steps before anything is recorded");
    line.option("--result-fd", "N", result_descriptor, "where the results go");
    line.option("--memory-limit", "BYTES", memory_limit, "device memory that the step may use");
    line.option("--clean-step", "NS", clean_step_ns, "what a step takes unobserved");
    line.flag("--everything-offloaded", everything_offloaded, "every saved tensor leaves at once");
    line.flag("--quick", quick, "as few steps as a recording needs");
    line.option("--micro-batches", "SEGMENT=N", micro_batches, "parts of the batch");
    line.input("--plan", "FILE", plan, "what the plan computes again runs again");
    line.input("--trace", "FILE", trace, "the plan's recording");
    flags.declare(line);
    flags.declare_group(line);
  }

  // None without --plan.
  [[nodiscard]] Result<std::optional<StepUnderPlan>> under() const {
    if (!plan) return std::optional<StepUnderPlan>();
    CommandFiles files;
    Result<StepUnderPlan> step = StepUnderPlan::load({*plan, trace}, {}, {}, files);
    if (!step) return step.error();
    return std::optional<StepUnderPlan>(std::move(step).value());
  }

  [[nodiscard]] Result<RunRequest> request() const {
    if (!result_descriptor) return usage_error("--result-fd is missing");
    CommandFiles files;  // that a user names: none
    Result<RunRequest> request = make_request(*model, flags, files);
    if (!request) return request.error();
    const Result<std::vector<Parts>> divisions = parse_divisions(micro_batches);
    if (!divisions) return divisions.error();
    for (const Parts& each : *divisions) {
      request->micro_batches.insert(request->micro_batches.end(), each.begin(), each.end());
    }
    return request;
  }

  [[nodiscard]] Result<RecordingRequest> recording() const {
    Result<RunRequest> run = request();
    if (!run) return run.error();
    RecordingRequest recording{.run = std::move(run).value(), .warmup = warmup.value_or(3)};
    recording.memory_limit = memory_limit;
    recording.quick = quick;
    return recording;
  }

  [[nodiscard]] Result<std::unique_ptr<Session>> session() const {
    const Result<RunRequest> asked = request();
    if (!asked) return asked.error();
    Result<std::unique_ptr<Session>> session = Session::create(*asked);
    if (session && memory_limit) (*session)->set_memory_limit(*memory_limit);
    return session;
  }

  [[nodiscard]] profiler::PassOptions passes() const {
    profiler::PassOptions options;
    options.warmup = warmup.value_or(3);
    options.everything_offloaded = everything_offloaded;
    options.clean_step_ns = clean_step_ns.value_or(0);
    options.memory_limit = memory_limit.value_or(0);
    options.restores_state = false;
    if (quick) make_quick(options);
    return options;
  }

  [[nodiscard]] Status answer(const std::string& text) const {
    return write_descriptor(static_cast<int>(*result_descriptor), text);
  }
};

int run_pass(CommandLine& line, ChildArguments& arguments, const Args& args, std::ostream& out,
             std::ostream& err, const std::function<Result<int>(Console&)>& body) {
  return run_verb(line, args, out, err, [&](Console& console) {
    return as_ranks_child(arguments.flags, [&] { return body(console); });
  });
}

}  // namespace

void make_quick(profiler::PassOptions& options) {
  options.steps = 4;
  options.structure = 2;
  options.timing = 2;
  options.wait_for_quiet = false;
}

Result<profiler::CleanResults> clean_in_child(const RecordingRequest& request) {
  Result<std::string> text = run_verb_in_child("clean-pass", request);
  if (!text) return text.error();
  return clean_results_from_json(*text);
}

Result<profiler::TimingPass> timing_in_child(const RecordingRequest& request) {
  Result<std::string> text = run_verb_in_child("timing-pass", request);
  if (!text) return text.error();
  return profiler::timing_pass_from_json(*text);
}

Result<Trace> record_divided(const RecordingRequest& request) {
  Result<std::string> text = run_verb_in_child("divided-step", request);
  if (!text) return text.error();
  return trace_from_json(*text, "the step in micro-batches");
}

int verb_divided_step(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("divided-step", "Records a step in micro-batches");
  ChildArguments arguments;
  arguments.declare(line);
  return run_pass(line, arguments, args, out, err, [&](Console& console) -> Result<int> {
    Result<RecordingRequest> request = arguments.recording();
    if (!request) return request.error();
    const Result<Trace> trace = record_here(*request, nullptr, args, console);
    if (!trace) return trace.error();
    if (Status status = arguments.answer(trace_to_json(*trace)); !status) return status.error();
    return 0;
  });
}

int verb_clean_pass(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("clean-pass", "Runs a step unobserved and calibrates the copy lanes");
  ChildArguments arguments;
  arguments.declare(line);
  return run_pass(line, arguments, args, out, err, [&](Console&) -> Result<int> {
    Result<std::unique_ptr<Session>> session = arguments.session();
    if (!session) return session.error();
    const Result<std::optional<StepUnderPlan>> under = arguments.under();
    if (!under) return under.error();
    const auto results = guarded([&]() -> Result<profiler::CleanResults> {
      const Result<profiler::StepFunctions> functions =
          *under ? (*under)->functions(**session) : (*session)->functions();
      if (!functions) return functions.error();
      // The limit is the step's.
      return profiler::clean_here((*session)->device(), *functions, arguments.passes(),
                                  [&] { (*session)->set_memory_limit(0); });
    });
    if (!results) return results.error();
    if (Status status = arguments.answer(clean_results_to_json(*results)); !status) {
      return status.error();
    }
    return 0;
  });
}

int verb_timing_pass(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("timing-pass", "Runs a step with the GPU's activity recorded");
  ChildArguments arguments;
  arguments.declare(line);
  return run_pass(line, arguments, args, out, err, [&](Console&) -> Result<int> {
    // Ahead of the device: CUPTI has to be there before CUDA starts.
    Result<std::unique_ptr<profiler::TimingRecorder>> recorder = profiler::TimingRecorder::create();
    if (!recorder) return recorder.error();
    Result<std::unique_ptr<Session>> session = arguments.session();
    if (!session) return session.error();
    const Result<std::optional<StepUnderPlan>> under = arguments.under();
    if (!under) return under.error();
    profiler::PassOptions passes = arguments.passes();
    if (*under) passes.again = (*under)->again();
    Result<profiler::TimingPass> timing = guarded([&]() -> Result<profiler::TimingPass> {
      return (*recorder)->run((*session)->device(), (*session)->functions(), passes);
    });
    if (!timing) return timing.error();
    if (Status status = arguments.answer(profiler::timing_pass_to_json(*timing)); !status) {
      return status.error();
    }
    return 0;
  });
}

}  // namespace stowage::cli
