#include "cli/torch/child_process.h"
#include "cli/torch/judgement.h"
#include "cli/torch/measured_run.h"
#include "cli/torch/measured_text.h"
#include "cli/torch/model_error.h"
#include "cli/torch/plan_inputs.h"
#include "cli/torch/ranks.h"
#include "cli/torch/reference_steps.h"
#include "cli/torch/results_json.h"
#include "cli/torch/run_arguments.h"
#include "cli/torch/step_progress.h"
#include "cli/torch/torch_verbs.h"
#include "report/words.h"
#include "simulator/machine/step_interval.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"

namespace stowage::cli {

namespace {

constexpr const char* kStepsHelp = "training steps to run";
constexpr std::int64_t kDefaultSteps = 10;

std::string execute_text(const PlanInputs& inputs, const MeasuredRun& run,
                         const std::vector<std::string>& failures) {
  const simulator::Predicted& predicted = inputs.predicted;
  const std::string parts = simulator::parts_text(inputs.structure.parts);
  std::string text = "ran " + report::run_line(*inputs.trace) + " under " + inputs.plan_file +
                     (parts.empty() ? "" : ", " + parts) + "\n";
  for (const std::string& failure : failures) text += "  failed      " + failure + "\n";
  text += "  peak        " + report::exact_bytes(run.peak_requested) + " requested, predicted " +
          report::with_commas(predicted.peak_requested) + ", difference " +
          report::with_commas(run.peak_requested - predicted.peak_requested) + " bytes\n";
  text += counters_text(run, predicted, inputs.caching_reserved);
  text += "  step time   " + format_time(run.step_ns) + ", predicted " +
          format_time(predicted.step) +
          ratio_text(run.step_ns, predicted.step,
                     simulator::step_interval(*inputs.trace, predicted.step, run.spread)) +
          "\n";
  text += "  stall       " + format_time(run.stall_ns) + ", predicted " +
          format_time(predicted.stall) + "\n";
  if (inputs.trace->env.device == "cpu") {
    text +=
        "              (times are reported, not judged: on the CPU device the copy threads "
        "and other programs compete with compute)\n";
  }
  text += "  host        " + report::exact_bytes(run.host_bytes) + "\n";
  text += parameters_text(run) + memory_text(run) + ranks_text(run);
  text += "  loss        " + std::to_string(run.steps.front().loss) + " in the first, " +
          std::to_string(run.steps.back().loss) + " in the last of " +
          report::count_of(static_cast<std::int64_t>(run.steps.size()), "step") + "\n";
  if (!run.on_plan) {
    text += "  off plan    " + run.first_difference + "; " +
            report::count_of(run.off_plan_packs, "saved tensor") + " left outside the plan\n";
  }
  return text;
}

// Of run-steps, where it is known what a step should take and where it is not.
constexpr Nanoseconds kKnownPatience = 12'000'000'000;
constexpr Nanoseconds kPatience = 4'000'000'000;

Result<MeasuredRun> run_planned(const PlanInputs& inputs, const RunArguments& run,
                                const MeasureOptions& options) {
  Result<std::unique_ptr<Session>> session = Session::create(inputs.request);
  if (!session) return session.error();
  if (run.memory_limit) (*session)->set_memory_limit(*run.memory_limit);
  executor::PlannedStepOptions planned;
  planned.structure = inputs.structure;
  planned.older = (*session)->step().older_tensors();
  planned.optimizer_state = (*session)->step().state_maker();
  planned.update_on_host = (*session)->step().host_updater();
  if (run.off_plan) planned.off_plan = executor::OffPlan::offload_all;
  Result<std::unique_ptr<executor::PlannedStep>> plan =
      executor::PlannedStep::create((*session)->device(), inputs.trace, inputs.schedule,
                                    (*session)->step().parameters(), std::move(planned));
  if (!plan) return plan.error();
  Result<MeasuredRun> measured = measure(**session, plan->get(), options);
  (*plan)->leave_parameters();
  return measured;
}

std::string name_of_run(const std::string& mode) {
  if (mode == "planned") return "the planned run";
  return mode == "plain" ? "the run of all of the batch at once" : "the reference";
}

Result<int> execute_plan(RunArguments& run, Console& console) {
  if (Status status = run.read(); !status) return status.error();
  Result<PlanInputs> inputs =
      load_plan_inputs(*run.plan, run.trace, run.model, run.placement, run.flags, console.files);
  if (!inputs) return inputs.error();
  if (Status status = run.check_ranks(*inputs); !status) return status.error();
  for (const std::string& warning : inputs->warnings) console.warn(warning);
  MeasureOptions options;
  options.course.steps = run.steps;
  if (console.progress()) console.note("the planned run ..");
  ProgressBar bar(console.err, console.progress(), "the planned run", "steps",
                  terminal().err_width);
  options.progress = [&bar](std::int64_t done, std::int64_t steps) { bar.update(done, steps, ""); };
  Result<MeasuredRun> measured = run_planned(*inputs, run, options);
  if (!measured) {
    const executor::ModelSpec& spec = inputs->request.spec;
    return of_model(measured.error(), spec.text(), spec);
  }
  for (const std::string& warning : measured->warnings) console.warn(warning);
  std::vector<std::string> failures = budget_failures(*measured, inputs->plan.budget);
  const bool passed = failures.empty();
  if (run.flags.ranks != nullptr) {
    auto all = lines_of_ranks(*run.flags.ranks, "failures", failures);
    if (!all) return all.error();
    failures = std::move(all).value();
  }
  if (console.json) {
    for (const std::string& failure : failures) console.warn(failure);
    console.out << execute_json(*inputs->trace, *measured, inputs->predicted,
                                inputs->caching_reserved, failures, inputs->plan_file,
                                inputs->trace_file, simulator::parts_text(inputs->structure.parts));
  } else {
    console.say(execute_text(*inputs, *measured, failures));
  }
  return passed ? 0 : static_cast<int>(ErrorCode::condition);
}

}  // namespace

int verb_execute(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("execute", "Runs real training steps under a plan");
  RunArguments run;
  run.declare(line, kStepsHelp, kDefaultSteps);
  line.flag("--allow-off-plan", run.off_plan,
            "go on when the step is not the plan's: saved tensors leave at once from there on");
  line.detail("Exit code 1 when the run is above the plan's budget, on the device or on the host.");
  line.example("stowage execute --plan p.json --steps 10");
  run.flags.declare_ranks(line, "stowage execute --distributed --plan p.json");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    return as_rank(run.flags, console, "execute",
                   [&](Console& own) { return execute_plan(run, own); });
  });
}

namespace {

// The arguments of run-steps.
struct RunSteps {
  RunArguments run;
  std::optional<std::string> mode;
  std::optional<std::int64_t> result_descriptor;
  std::optional<std::int64_t> dump_descriptor;
  std::optional<std::int64_t> progress_descriptor;
  std::optional<std::int64_t> dumped;
  std::optional<std::int64_t> least;
  bool digests = false;

  void declare(CommandLine& line) {
    run.declare(line, kStepsHelp, kDefaultSteps);
    run.flags.declare_group(line);
    line.option("--mode", "NAME", mode, "reference, plain (all of the batch at once) or planned",
                true);
    line.option("--dumped-steps", "N", dumped, "steps whose tensors are written");
    line.flag("--quick", run.quick, "no more steps than that");
    line.flag("--dump-digests", digests, "write their digests, whatever their size");
    line.option("--least-steps", "N", least, "fewer steps than --steps when they are long");
    line.option("--result-fd", "N", result_descriptor, "where the figures go");
    line.option("--dump-fd", "N", dump_descriptor, "where the tensors go");
    line.option("--progress-fd", "N", progress_descriptor, "the terminal that says how far it is");
  }

  [[nodiscard]] MeasureOptions measure_options(const PlanInputs& inputs) const {
    MeasureOptions options;
    options.course.steps = run.steps;
    options.course.least_steps = least.value_or(0);
    options.course.expected =
        *mode == "planned" ? inputs.predicted.step : inputs.trace->overhead.clean.step_ns;
    options.course.patience = run.quick                     ? 0
                              : options.course.expected > 0 ? kKnownPatience
                                                            : kPatience;
    if (digests) options.most_dumped_bytes = executor::TensorDumpWriter::kAlwaysDigests;
    options.dumped_steps = dump_descriptor ? dumped.value_or(0) : 0;
    options.dump_descriptor = static_cast<int>(dump_descriptor.value_or(-1));
    options.updated_on_host = updated_on_host(inputs);
    return options;
  }

  [[nodiscard]] Result<int> answer(Console& console) {
    if (Status status = run.read(); !status) return status.error();
    if (!result_descriptor || (*mode != "reference" && *mode != "plain" && *mode != "planned")) {
      return usage_error("--mode and --result-fd are needed");
    }
    Result<PlanInputs> inputs =
        load_plan_inputs(*run.plan, run.trace, run.model, run.placement, run.flags, console.files);
    if (!inputs) return inputs.error();
    if (*mode == "plain") inputs->request.micro_batches.clear();
    MeasureOptions options = measure_options(*inputs);
    StepProgress progress(progress_descriptor, name_of_run(*mode));
    options.progress = progress.callback();
    const auto measured = [&]() -> Result<MeasuredRun> {
      if (*mode == "planned") return run_planned(*inputs, run, options);
      if (*mode == "reference") return run_reference_steps(*inputs, run.memory_limit, options);
      Result<std::unique_ptr<Session>> session = Session::create(inputs->request);
      if (!session) return session.error();
      return measure(**session, nullptr, options);
    }();
    if (!measured) return measured.error();
    const Status written =
        write_descriptor(static_cast<int>(*result_descriptor), measured_run_to_json(*measured));
    if (!written) return written.error();
    return 0;
  }
};

}  // namespace

int verb_run_steps(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("run-steps", "Runs steps with or without a plan, for a parent process");
  RunSteps steps;
  steps.declare(line);
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    return as_ranks_child(steps.run.flags, [&] { return steps.answer(console); });
  });
}

}  // namespace stowage::cli
