#include "cli/torch/check_run.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "cli/baseline.h"
#include "cli/plan_file.h"
#include "cli/torch/child_process.h"
#include "cli/torch/device_choice.h"
#include "cli/torch/results_json.h"
#include "cli/torch/step_progress.h"
#include "cli/torch/torch_verbs.h"
#include "executor/planned_step.h"
#include "planner/applied_file.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "traces/trace_file.h"
#include "traces/trace_json.h"

namespace stowage::cli {

namespace {

// What the plan says of the step and the command line does not. A value that says nothing is 0 or
// empty.
template <class Value>
Status fill(const char* flag, std::optional<Value>& given, const Value& planned) {
  if (planned == Value{}) return Unit{};
  if (!given) {
    given = planned;
    return Unit{};
  }
  if (*given == planned) return Unit{};
  const auto text = [](const Value& value) {
    if constexpr (std::is_same_v<Value, std::string>) {
      return value;
    } else {
      return std::to_string(value);
    }
  };
  return usage_error(std::string("--") + flag + " " + text(*given) +
                         " contradicts the plan's step (" + text(planned) + ")",
                     std::string("leave --") + flag + " out, or make a plan for the step you mean");
}

Status fill(RunFlags& flags, const simulator::PlanTarget& target) {
  Result<RunFlags> said = recorded_form(std::move(flags));
  if (!said) return std::move(said).error();
  flags = std::move(said).value();
  for (const Status& status :
       {fill("batch", flags.batch, target.batch), fill("dtype", flags.dtype, target.dtype),
        fill("autocast", flags.autocast, target.autocast),
        fill("optimizer", flags.optimizer, target.optimizer),
        fill("grad-scaler", flags.grad_scaler, target.grad_scaler),
        fill("device", flags.device, target.device),
        fill("threads", flags.threads, target.threads)}) {
    if (!status) return status.error();
  }
  // No autocast, as the command line has it.
  if (flags.autocast && flags.autocast->empty()) flags.autocast.reset();
  // What a plan of a recording leaves out of these two its step does not have.
  if (target.fingerprint.empty()) return Unit{};
  const std::pair<const char*, bool> others[] = {
      {"autocast", flags.autocast && target.autocast.empty()},
      {"grad-scaler", flags.grad_scaler && target.grad_scaler.empty()}};
  for (const auto& [flag, is_other] : others) {
    if (!is_other) continue;
    return usage_error(std::string("--") + flag + " contradicts the plan's step, which has none",
                       std::string("leave it out, or make a plan for the step you mean"));
  }
  return Unit{};
}

// A plan or a trace on its way to the child.
Result<ScratchFile> scratch_with(const std::string& text) {
  Result<ScratchFile> scratch = ScratchFile::create();
  if (!scratch) return scratch;
  if (Status status = write_descriptor(scratch->descriptor(), text); !status) {
    return status.error();
  }
  return scratch;
}

std::string path_of(const ScratchFile& scratch) {
  return "/proc/self/fd/" + std::to_string(scratch.descriptor());
}

// The child's half.
Result<MeasuredRun> run_steps(const RunRequest& request, std::int64_t steps,
                              const std::optional<std::string>& plan_file,
                              const std::optional<std::string>& trace_file,
                              StepProgress& progress) {
  MeasureOptions options;
  options.progress = progress.callback();
  options.course.steps = steps;
  std::shared_ptr<const Trace> trace;
  simulator::Schedule schedule;
  executor::PlannedStepOptions options_of_plan;
  if (plan_file) {
    Result<LoadedTrace> loaded = load_trace(*trace_file);
    if (!loaded) return loaded.error();
    trace = std::make_shared<const Trace>(std::move(loaded->trace));
    Result<simulator::Plan> plan = load_plan(*plan_file);
    if (!plan) return plan.error();
    Result<planner::AppliedFile> applied = planner::apply_file(*trace, *plan, *plan_file);
    if (!applied) return applied.error();
    options_of_plan.structure = std::move(applied->structure);
    schedule = std::move(applied->lowering.schedule);
  }
  Result<std::unique_ptr<Session>> session = Session::create(request);
  if (!session) return session.error();
  if (!plan_file) return measure(**session, nullptr, options);
  options_of_plan.older = (*session)->step().older_tensors();
  options_of_plan.optimizer_state = (*session)->step().state_maker();
  options_of_plan.update_on_host = (*session)->step().host_updater();
  Result<std::unique_ptr<executor::PlannedStep>> planned = executor::PlannedStep::create(
      (*session)->device(), trace, schedule, (*session)->step().parameters(), options_of_plan);
  if (!planned) return planned.error();
  Result<MeasuredRun> measured = measure(**session, planned->get(), options);
  (*planned)->leave_parameters();
  return measured;
}

}  // namespace

Result<RunRequest> check_request(const simulator::PlanTarget* plan, const std::string& plan_file,
                                 const std::optional<std::string>& model, RunFlags flags,
                                 CommandFiles& files) {
  std::string spec = model.value_or("");
  if (plan != nullptr) {
    if (Status status = fill(flags, *plan); !status) return status.error();
    if (spec.empty()) spec = plan->model;
    if (spec.empty()) {
      return Error{ErrorCode::bad_input, "the plan says neither its trace nor its model", plan_file,
                   "/for", "give the model with --model, or the trace with --trace FILE"};
    }
  }
  Result<RunRequest> request = make_request(spec, flags, files);
  if (!request) return request;
  if (plan != nullptr && model && !plan->model.empty() &&
      portable_model(request->spec.text()) != portable_model(plan->model)) {
    return usage_error(
        "--model " + request->spec.text() + " is not the plan's model " + plan->model,
        "leave --model out, or make a plan for that model");
  }
  if (request->device == "cpu" && request->threads == 0) request->threads = 1;
  return request;
}

Result<AppliedPlan> apply_plan(simulator::Plan plan, const std::string& plan_file,
                               const Trace& trace) {
  plan.target = {};
  plan.predicted.reset();
  Result<planner::AppliedFile> file = planner::apply_file(trace, plan, plan_file);
  if (!file) return file.error();
  AppliedPlan applied{std::move(plan), std::move(file->index), std::move(file->lowering.schedule)};
  applied.moves = !applied.schedule.tenants.empty() || !file->structure.empty();
  return applied;
}

report::PeakContent content_of(const Trace& trace, const AppliedPlan* plan) {
  if (plan != nullptr) return report::peak_content(*plan->index, plan->schedule);
  const simulator::StepIndex index(trace);
  return report::peak_content(index, simulator::resident_schedule(index));
}

Result<MeasuredRun> measure_in_child(const RunRequest& request, std::int64_t steps,
                                     const AppliedPlan* plan, const Trace* trace,
                                     const std::vector<std::string>& progress) {
  Result<ScratchFile> answer = ScratchFile::create();
  if (!answer) return answer.error();
  std::vector<std::string> arguments = {"check-steps"};
  for (std::string& word : request.arguments()) arguments.push_back(std::move(word));
  arguments.insert(arguments.end(), {"--steps", std::to_string(steps), "--result-fd",
                                     std::to_string(answer->descriptor())});
  arguments.insert(arguments.end(), progress.begin(), progress.end());
  std::vector<ScratchFile> inputs;  // open until the child is done
  if (plan != nullptr) {
    for (const auto& [flag, text] : {std::pair{"--plan", simulator::plan_to_json(plan->plan)},
                                     std::pair{"--trace", trace_to_json(*trace)}}) {
      Result<ScratchFile> file = scratch_with(text);
      if (!file) return file.error();
      arguments.insert(arguments.end(), {flag, path_of(*file)});
      inputs.push_back(std::move(file).value());
    }
  }
  if (Status status = run_child(arguments); !status) return status.error();
  Result<std::string> text = answer->content();
  if (!text) return text.error();
  return measured_run_from_json(*text);
}

int verb_check_steps(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("check-steps", "Runs steps with or without a plan, for `check`");
  std::optional<std::string> model;
  std::optional<std::string> plan;
  std::optional<std::string> trace;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> result_descriptor;
  std::optional<std::int64_t> progress_descriptor;
  RunFlags flags;
  line.positional("MODEL", model, "the model with its options");
  line.input("--plan", "FILE", plan, "the plan");
  line.input("--trace", "FILE", trace, "the recording that its rules are applied to");
  line.option("--steps", "N", steps, "training steps to run");
  line.option("--result-fd", "N", result_descriptor, "where the figures go");
  line.option("--progress-fd", "N", progress_descriptor, "the terminal that says how far it is");
  flags.declare(line);
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (!steps || !result_descriptor || plan.has_value() != trace.has_value()) {
      return usage_error("--steps and --result-fd are needed, and --trace beside --plan");
    }
    Result<RunRequest> request = make_request(*model, flags, console.files);
    if (!request) return request.error();
    StepProgress progress(progress_descriptor, "the checked run");
    Result<MeasuredRun> run = run_steps(*request, *steps, plan, trace, progress);
    if (!run) return run.error();
    if (Status status =
            write_descriptor(static_cast<int>(*result_descriptor), measured_run_to_json(*run));
        !status) {
      return status.error();
    }
    return 0;
  });
}

}  // namespace stowage::cli
