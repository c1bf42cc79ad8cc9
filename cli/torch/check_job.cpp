#include "cli/torch/check_job.h"
#include "cli/torch/recorded_values.h"
#include "cli/torch/step_progress.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/baseline_json.h"
#include "cli/plan_file.h"
#include "cli/torch/check_run.h"
#include "cli/torch/model_error.h"
#include "cli/torch/recorded_step.h"
#include "planner/budget.h"
#include "simulator/plan/target_check.h"
#include "simulator/step/plan_structure.h"
#include "traces/file_io.h"
#include "traces/json_bounds.h"
#include "traces/trace_file.h"

namespace stowage::cli {

namespace {

constexpr std::int64_t kCheckSteps = 4;   // peaks count from the third on
constexpr std::int64_t kStallSteps = 15;  // ten of them are timed, three have their stalls measured

// The baseline, or none when there is none yet and one is to be written.
Result<std::optional<Baseline>> find_baseline(const CheckOptions& options) {
  std::optional<Baseline> none;
  if (!options.baseline) return none;
  std::error_code ignored;
  if (!std::filesystem::exists(*options.baseline, ignored)) {
    if (options.update) return none;
    return Error{ErrorCode::bad_input, "there is no such baseline", *options.baseline, "",
                 "write it with --update-baseline"};
  }
  const Result<std::string> text = read_file(*options.baseline, kPlanBounds.bytes);
  if (!text) return text.error();
  Result<Baseline> baseline = baseline_from_json(*text, *options.baseline);
  if (!baseline) return baseline.error();
  return std::optional<Baseline>(std::move(baseline).value());
}

CheckCase plain_case(const std::string& name, CaseOutcome outcome, const std::string& message) {
  CheckCase result;
  result.name = name;
  result.outcome = outcome;
  result.message = message;
  return result;
}

CheckCase failed_case(const std::string& name, const std::string& what, const Error& error) {
  return plain_case(name, CaseOutcome::failed, what + error.text());
}

MadeWith made_with_of(const MeasuredRun& run, const std::string& plan_hash,
                      const std::string& placement) {
  const auto fact = [&run](const char* key) {
    const auto found = run.facts.find(key);
    return found == run.facts.end() ? std::string() : found->second;
  };
  Run told;
  told.threads = std::stoll(fact("threads"));
  told.deterministic = fact("deterministic") == "yes";
  Environment env;
  env.torch = fact("torch");
  env.device = fact("device");
  env.device_name = fact("device name");
  env.allocator = fact("allocator");
  return made_with(told, env, plan_hash, placement);
}

StepCost cost_of(const MeasuredRun& run) {
  return {run.peak_requested, run.peak_active, run.peak_reserved,
          run.host_bytes,     run.stall_ns,    run.step_ns};
}

// One check, from its options to its report.
class Job {
 public:
  Job(const CheckOptions& options, Console& console) : options_(options), console_(console) {}

  Result<CheckReport> run() {
    if (Status status = prepare(); !status) return status.error();
    if (plan_) {
      Result<bool> applies = record_and_lower();
      if (!applies) return applies.error();
      if (!*applies) return report_;
    }
    Result<MeasuredRun> run = measure_in_child(*request_, steps(), applied_ ? &*applied_ : nullptr,
                                               scheduled_on(), progress_arguments(console_));
    if (!run && run.error().code != ErrorCode::condition) {
      const executor::ModelSpec& spec = request_->spec;
      return of_model(run.error(), options_.model.value_or(spec.text()), spec);
    }
    if (!run) {
      report_.cases.push_back(failed_case("step", "the step did not run: ", run.error()));
      return report_;
    }
    for (const std::string& warning : run->warnings) console_.warn(warning);
    if (!run->peaks_constant) console_.warn("the peak requested differs between steady steps");
    if (Status status = judge(*run); !status) return status.error();
    return report_;
  }

 private:
  // Request, identity, and whether the baseline is this step's.
  Status prepare() {
    report_.name = options_.name.value_or("");
    report_.plan_file = options_.plan.value_or("");
    report_.baseline_file = options_.baseline.value_or("");
    if (options_.plan) {
      Result<simulator::Plan> plan = load_plan(*options_.plan);
      if (!plan) return plan.error();
      plan_ = std::move(plan).value();
      Run said = said_by(plan_->target);
      if (options_.model) said.model.clear();  // another path, as a rule
      const Status values =
          check_recorded_values(said, plan_->target.device, read_from_plan(*options_.plan));
      if (!values) return values.error();
      plan_hash_ = decisions_hash(*plan_);
      if (Status status = load_original(); !status) return status.error();
    }
    const simulator::PlanTarget target = step_of_plan();
    Result<RunRequest> request = check_request(plan_ ? &target : nullptr, report_.plan_file,
                                               options_.model, options_.flags, console_.files);
    if (!request) return request.error();
    request_ = std::move(request).value();
    // Only now: before, it may be a file that the command reads as something else.
    Result<std::optional<Baseline>> baseline = find_baseline(options_);
    if (!baseline) return baseline.error();
    baseline_ = std::move(baseline).value();
    Run run;
    run.model = request_->spec.text();
    run.batch = request_->spec.batch;
    run.seq = request_->seq();
    run.dtype = request_->spec.dtype;
    run.autocast = executor::recorded_text(request_->autocast);
    run.optimizer = executor::to_string(request_->optimizer);
    if (request_->grad_scaler) run.grad_scaler = executor::to_string(*request_->grad_scaler);
    run.seed = request_->seed;
    report_.step = step_identity(run);
    report_.made_with.device = request_->device;
    on_ = options_.budget_on.value_or(plan_ ? plan_->budget.on : simulator::PeakKind::active);
    if (on_ == simulator::PeakKind::reserved && request_->device == "cpu") {
      return usage_error("the CPU device has no reserved bytes", "use --budget-on active");
    }
    if (plan_ && !baseline_ && !options_.update && !options_.budget && !plan_->budget.device &&
        plan_->budget.device_text.empty()) {
      return usage_error("nothing to compare with: the plan has no budget",
                         "give --baseline FILE or --budget SIZE");
    }
    if (!baseline_) return Unit{};
    return check_same_step(*baseline_, report_.baseline_file, report_.step,
                           options_.update
                               ? "it is not overwritten: give another file, or remove it first"
                               : "give this step's baseline, or a new file with --update-baseline");
  }

  Status record() {
    if (recorded_) return Unit{};
    RunRequest request = *request_;
    if (plan_) request.micro_batches = simulator::parts_of(*plan_);
    Result<Trace> trace = record_in_child(request);
    if (!trace) return trace.error();
    recorded_ = plan_ ? with_fingerprint(std::move(trace).value(), plan_->target.fingerprint)
                      : std::move(trace).value();
    return Unit{};
  }

  // The trace that the plan was made from, if it is there. The plan may be for other saved tensors
  // than it has: the step has changed, and one of both was made again since.
  Status load_original() {
    original_file_ = options_.trace.value_or("");
    if (original_file_.empty()) {
      Result<report::PlansTrace> found = plans_trace(*plan_, *options_.plan, console_.files);
      if (!found) return found.error();
      if (found->is_there) original_file_ = found->file;
    }
    if (original_file_.empty()) return Unit{};
    Result<LoadedTrace> loaded = load_trace(original_file_);
    if (!loaded) return loaded.error();
    const Status fits = simulator::check_target(*plan_, *options_.plan, loaded->trace);
    if (!fits && fits.error().pointer != "/for/fingerprint") return fits.error();
    original_ = std::move(loaded->trace);
    if (!fits) return Unit{};
    return resolve_plans_budget(*original_, loaded->sha256, *options_.plan, *plan_);
  }

  // What the plan says of its step, and what it leaves out as its trace has it.
  [[nodiscard]] simulator::PlanTarget step_of_plan() const {
    if (original_) return simulator::target_of(*original_);
    return plan_ ? plan_->target : simulator::PlanTarget{};
  }

  // Its budget in bytes, in the memory that it runs in.
  Status settle_plan() {
    simulator::PlanBudget& budget = plan_->budget;
    if (!budget.device) {
      Status status = resolve_plans_budget(*scheduled_on(), "", *options_.plan, *plan_);
      if (!status) return status;
    }
    budget.device_text.clear();
    if (options_.placement) planner::move_to(*options_.placement, *plan_);
    return Unit{};
  }

  // False: the plan does not apply, and the report says why.
  Result<bool> record_and_lower() {
    if (Status status = record(); !status) return status.error();
    const bool other_step =
        !plan_->target.fingerprint.empty() && plan_->target.fingerprint != recorded_->fingerprint;
    if (original_ && original_->fingerprint != recorded_->fingerprint) original_.reset();
    if (Status status = settle_plan(); !status) return status.error();
    Result<AppliedPlan> applied = apply_plan(*plan_, report_.plan_file, *scheduled_on());
    if (!applied) {
      report_.cases.push_back(failed_case(
          "plan", "the plan does not apply to the step as it is now: ", applied.error()));
      return false;
    }
    applied_ = std::move(applied).value();
    std::string message = "its rules apply to the step";
    if (other_step) {
      message +=
          ", which is not the recorded one any more (another fingerprint): the plan was not made "
          "for it";
    } else if (!original_) {
      warn_of_times();
    }
    report_.cases.push_back(plain_case("plan", CaseOutcome::passed, message));
    return true;
  }

  // The schedule is of the recording that was made now.
  void warn_of_times() {
    const std::string follows =
        ": its automatic points follow this recording's times, so bytes may differ from run to "
        "run; ";
    if (original_file_.empty()) {
      console_.warn("the plan's trace is not there" + follows + "keep the trace beside the plan");
    } else {
      console_.warn("the plan's trace " + original_file_ +
                    " is of another step than this one (another fingerprint)" + follows +
                    "record it and plan again");
    }
  }

  [[nodiscard]] const Trace* scheduled_on() const {
    if (!plan_) return nullptr;
    return original_ ? &*original_ : &*recorded_;
  }

  [[nodiscard]] std::int64_t steps() const {
    const bool stall_counts = applied_ && applied_->moves && request_->device == "cuda";
    return options_.steps.value_or(stall_counts ? kStallSteps : kCheckSteps);
  }

  [[nodiscard]] std::string stall_not_judged() const {
    if (!applied_ || !applied_->moves) return "nothing moves";
    if (request_->device == "cpu") {
      return "on the CPU device the copy threads and other programs compete with compute";
    }
    if (steps() < kStallSteps)
      return "it takes --steps " + std::to_string(kStallSteps) + " for a median that repeats";
    return {};
  }

  // Where `measured` is explained from: the recording that the schedule is of when its replay has
  // the measured peak, else the step as it is now.
  Result<report::PeakContent> content(Bytes measured) {
    if (original_) {
      report::PeakContent found = content_of(*original_, &*applied_);
      if (found.peak_requested == measured) return found;
    }
    if (Status status = record(); !status) return status.error();
    if (!applied_) return content_of(*recorded_, nullptr);
    if (!original_) return content_of(*recorded_, &*applied_);
    Result<AppliedPlan> applied = apply_plan(*plan_, report_.plan_file, *recorded_);
    if (!applied) return applied.error();
    return content_of(*recorded_, &*applied);
  }

  Status judge(const MeasuredRun& run) {
    report_.measured = cost_of(run);
    report_.made_with = made_with_of(run, plan_hash_, plan_ ? name_of(plan_->placement) : "");
    CheckInput input;
    input.now = *report_.measured;
    input.tolerances = options_.tolerances;
    input.stall_not_judged = stall_not_judged();
    // docs/decisions/0011
    const auto streams = [](const simulator::Tenant& tenant) { return tenant.has_own_home; };
    if (applied_ && plan_->placement == simulator::PlacementMode::caching &&
        std::any_of(applied_->schedule.tenants.begin(), applied_->schedule.tenants.end(),
                    streams)) {
      input.reserved_not_judged =
          "parameters or optimizer state stream, so what is reserved hangs on the driver's "
          "addresses";
    }
    input.budget = options_.budget;
    if (!input.budget && applied_) input.budget = applied_->plan.budget.device;
    input.budget_on = on_;
    if (baseline_) input.incomparable = differences(baseline_->made_with, report_.made_with);
    // What a baseline that is about to be replaced says is told where it can be compared.
    if (!options_.update || input.incomparable.empty()) input.baseline = baseline_;
    std::vector<CheckCase> cases = cases_of(input);
    if (!options_.update) return finish(std::move(cases), input);
    for (CheckCase& each : cases) {
      if (each.outcome != CaseOutcome::failed || each.name == "budget") continue;
      each.outcome = CaseOutcome::passed;
      each.message += "; written to the baseline";
    }
    Result<report::PeakContent> now = content(input.now.peak_requested);
    if (!now) return now.error();
    const Baseline written{report_.step, report_.made_with, cost_to_keep(input), *now};
    if (Status status = make_folders(*options_.baseline); !status) return status;
    if (Status status = write_output(console_, *options_.baseline, baseline_to_json(written));
        !status) {
      return status;
    }
    report_.baseline_written = true;
    return finish(std::move(cases), input);
  }

  // Times only where they are judged, and those of the baseline before as long as they are near: a
  // file that is written again without need is the same.
  [[nodiscard]] StepCost cost_to_keep(const CheckInput& input) const {
    StepCost cost = input.now;
    if (!input.stall_not_judged.empty()) {
      cost.stall_ns = cost.step_ns = -1;
    } else if (input.baseline && near(cost, input.baseline->measured)) {
      cost.stall_ns = input.baseline->measured.stall_ns;
      cost.step_ns = input.baseline->measured.step_ns;
    }
    return cost;
  }
  [[nodiscard]] bool near(const StepCost& now, const StepCost& then) const {
    const Wide most = Wide{then.step_ns} * options_.tolerances.stall / kPpm;
    return then.step_ns > 0 && std::abs(now.stall_ns - then.stall_ns) <= most &&
           std::abs(now.step_ns - then.step_ns) <= most;
  }

  Status finish(std::vector<CheckCase> cases, const CheckInput& input) {
    const bool explains = std::any_of(cases.begin(), cases.end(), [](const CheckCase& each) {
      return each.outcome == CaseOutcome::failed && each.measured;
    });
    if (explains) {
      Result<report::PeakContent> now = content(input.now.peak_requested);
      if (!now) return now.error();
      explain(cases, input.baseline, *now);
    }
    for (CheckCase& each : cases) report_.cases.push_back(std::move(each));
    return Unit{};
  }

  const CheckOptions& options_;
  Console& console_;
  std::optional<Baseline> baseline_;
  std::optional<simulator::Plan> plan_;
  std::string plan_hash_;
  std::optional<RunRequest> request_;
  simulator::PeakKind on_ = simulator::PeakKind::active;
  std::optional<Trace> recorded_;  // the step as it is now
  std::optional<Trace> original_;  // the plan's own trace, while it is still of this step
  std::string original_file_;      // where it is, whatever it is of; empty: it is not there
  std::optional<AppliedPlan> applied_;
  CheckReport report_;
};

}  // namespace

Result<CheckReport> check(const CheckOptions& options, Console& console) {
  return Job(options, console).run();
}

}  // namespace stowage::cli
