#include "cli/torch/plan_inputs.h"

#include <utility>

#include "cli/plan_file.h"
#include "cli/torch/recorded_step.h"
#include "cli/torch/recorded_values.h"
#include "executor/attribution_spec.h"
#include "planner/applied_file.h"
#include "planner/budget.h"
#include "report/simulation.h"
#include "simulator/plan/target_check.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/step_index.h"
#include "traces/trace_file.h"

namespace stowage::cli {

namespace {

struct FoundTrace {
  Trace trace;
  std::string file;
  std::string sha256;  // empty: recorded again
};

// What the step that a plan describes is refused with: the mistake is in the plan where no flag
// says anything of it.
Error in_target(Error error, const std::string& plan_file, const RunFlags& flags) {
  const bool by_flags = flags.device || flags.batch || flags.seq || flags.dtype || flags.autocast ||
                        flags.optimizer || flags.grad_scaler || flags.threads;
  if (error.code != ErrorCode::usage || by_flags) return error;
  error.code = ErrorCode::bad_input;
  error.file = plan_file;
  error.pointer = "/for";
  return error;
}

// Whether it is of a data-parallel step: its gradients are reduced.
bool is_of_ranks(const Trace& trace) {
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    if (trace.string(trace.ops.name[op]).rfind("c10d::allreduce", 0) == 0) return true;
  }
  return false;
}

Status check_ranks_of(const Trace& trace, const RunFlags& flags) {
  if (is_of_ranks(trace) == flags.distributed) return Unit{};
  if (flags.distributed) {
    return usage_error("--distributed, and the plan is of a step whose gradients nobody reduces",
                       "record it with stowage profile --distributed, and plan that");
  }
  return usage_error("the plan is of a data-parallel step, whose gradients ranks reduce",
                     "run it as torchrun --no-python --nproc-per-node 2 stowage .. --distributed");
}

// Neither given nor where the plan says: the step is recorded again.
Result<FoundTrace> record_again(const simulator::Plan& plan, const std::string& plan_file,
                                const RunFlags& flags, CommandFiles& files) {
  if (plan.target.model.empty()) {
    return Error{ErrorCode::bad_input, "the plan says neither its trace nor its model", plan_file,
                 "/for", "give the trace with --trace FILE"};
  }
  const Result<RunFlags> said = recorded_form(flags);
  if (!said) return said.error();
  Run run = said_by(plan.target);
  // A plan that was written by hand need not say all of it.
  if (run.batch == 0) run.batch = flags.batch.value_or(0);
  if (run.dtype.empty()) run.dtype = flags.dtype.value_or("");
  if (run.optimizer.empty()) run.optimizer = said->optimizer.value_or("");
  if (run.autocast.empty() && plan.target.fingerprint.empty()) {
    run.autocast = said->autocast.value_or("");
  }
  if (run.grad_scaler.empty() && plan.target.fingerprint.empty()) {
    run.grad_scaler = said->grad_scaler.value_or("");
  }
  if (run.threads == 0) run.threads = flags.threads.value_or(0);
  Result<RunRequest> request = make_request(run, plan.target.device, flags, files);
  if (request) request->micro_batches = simulator::parts_of(plan);
  if (!request) return in_target(request.error(), plan_file, flags);
  Result<Trace> trace = record_in_child(*request);
  if (!trace) return trace.error();
  return FoundTrace{with_fingerprint(std::move(trace).value(), plan.target.fingerprint), "", ""};
}

Result<FoundTrace> find_trace(const simulator::Plan& plan, const std::string& plan_file,
                              const std::optional<std::string>& trace_file, const RunFlags& flags,
                              CommandFiles& files, std::vector<std::string>& warnings) {
  std::string file = trace_file.value_or("");
  if (file.empty()) {
    Result<report::PlansTrace> found = plans_trace(plan, plan_file, files);
    if (!found) return found.error();
    if (found->is_there) {
      file = found->file;
    } else if (!found->file.empty()) {
      warnings.push_back("the plan's trace " + found->file +
                         " is not there; recording the step again");
    }
  }
  if (file.empty() && flags.distributed) {
    return Error{ErrorCode::bad_input, "the plan's recording is not to be found", plan_file,
                 "/for/trace_file", "give it with --trace FILE"};
  }
  if (file.empty()) return record_again(plan, plan_file, flags, files);
  Result<LoadedTrace> loaded = load_trace(file);
  if (!loaded) return loaded.error();
  const Status values =
      check_recorded_values(loaded->trace.run, loaded->trace.env.device, read_from_trace(file));
  if (!values) return values.error();
  if (!plan.target.trace.empty() && plan.target.trace != loaded->sha256) {
    warnings.push_back(file +
                       " is another recording than the one the plan was made from; only the "
                       "prediction changes");
  }
  return FoundTrace{std::move(loaded->trace), file, loaded->sha256};
}

// Reserved bytes are not compared where either has none.
bool says_otherwise(simulator::Predicted then, const simulator::Predicted& now) {
  if (then.peak_reserved < 0 || now.peak_reserved < 0) then.peak_reserved = now.peak_reserved;
  return then != now;
}

}  // namespace

Result<PlanInputs> load_plan_inputs(const std::string& plan_file,
                                    const std::optional<std::string>& trace_file,
                                    const std::optional<std::string>& model,
                                    std::optional<simulator::PlacementMode> placement,
                                    const RunFlags& flags, CommandFiles& files) {
  PlanInputs inputs;
  inputs.plan_file = plan_file;
  Result<simulator::Plan> plan = load_plan(plan_file);
  if (!plan) return plan.error();
  inputs.plan = std::move(plan).value();
  Run said = said_by(inputs.plan.target);
  if (model) said.model.clear();  // another path, as a rule
  const Status values =
      check_recorded_values(said, inputs.plan.target.device, read_from_plan(plan_file));
  if (!values) return values.error();
  const simulator::PlacementMode planned_for = inputs.plan.placement;
  Result<FoundTrace> found =
      find_trace(inputs.plan, plan_file, trace_file, flags, files, inputs.warnings);
  if (!found) return found.error();
  inputs.trace_file = found->file;
  inputs.trace = std::make_shared<const Trace>(std::move(found->trace));
  if (Status status = simulator::check_target(inputs.plan, plan_file, *inputs.trace); !status) {
    Error error = std::move(status).error();
    if (inputs.trace_file.empty()) {
      error.message += "; its own trace is gone and the step was recorded again";
      if (error.pointer == "/for/fingerprint")
        error.hint = "give the --threads that it was first recorded with, or make the plan again";
    }
    return error;
  }
  if (Status status = check_ranks_of(*inputs.trace, flags); !status) return status.error();
  const Status budget = resolve_plans_budget(*inputs.trace, found->sha256, plan_file, inputs.plan);
  if (!budget) return budget.error();
  if (placement) planner::move_to(*placement, inputs.plan);
  Result<RunRequest> request =
      make_request(inputs.trace->run, inputs.trace->env.device, flags, files);
  if (!request) return request.error();
  inputs.request = std::move(request).value();
  if (model) {
    RunFlags given = flags;
    given.batch = inputs.trace->run.batch;
    given.dtype = inputs.trace->run.dtype;
    given.device = inputs.request.device;
    if (const std::string of = executor::attribution_of(inputs.request.spec); !of.empty()) {
      given.attribute = of;
    }
    Result<RunRequest> asked = make_request(*model, given, files);
    if (!asked) return asked.error();
    if (asked->spec.text() != inputs.request.spec.text()) {
      return usage_error("--model " + asked->spec.text() + " is not the plan's model " +
                             inputs.request.spec.text(),
                         "leave --model out, or make a plan for that model");
    }
  }

  Result<planner::AppliedFile> applied = planner::apply_file(*inputs.trace, inputs.plan, plan_file);
  if (!applied) return applied.error();
  inputs.structure = std::move(applied->structure);
  inputs.request.micro_batches = inputs.structure.parts;
  inputs.schedule = std::move(applied->lowering.schedule);
  const simulator::ReplayResult replayed = simulator::replay(*applied->index, inputs.schedule);
  inputs.predicted = planner::predicted_of(replayed);
  const bool is_placed = inputs.schedule.placement == simulator::PlacementMode::planned &&
                         inputs.predicted.peak_reserved >= 0;
  if (is_placed) {
    inputs.caching_reserved =
        report::reserved_bytes(*applied->index, inputs.schedule, replayed).caching;
  }
  inputs.allocator_exact =
      is_placed || (replayed.allocator_periods > 0 && replayed.allocator_exact);
  inputs.active_varies = replayed.active_varies;
  inputs.later_segments = replayed.later_segments;
  if (inputs.plan.predicted && inputs.plan.placement == planned_for &&
      says_otherwise(*inputs.plan.predicted, inputs.predicted)) {
    inputs.warnings.push_back(
        "the prediction in " + plan_file +
        " is not what this version of the simulator says for this trace; using the new one");
  }
  return inputs;
}

}  // namespace stowage::cli
