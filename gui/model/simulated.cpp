#include "gui/model/simulated.h"

#include <algorithm>
#include <utility>

#include "gui/model/same_machine.h"
#include "planner/applied_file.h"
#include "planner/budget.h"
#include "report/plans_trace.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/segment_rule_writer.h"
#include "simulator/step/unroll.h"

namespace stowage::gui {
namespace {

// The step that a plan makes of the recording.
struct Unrolled {
  std::shared_ptr<const simulator::StepIndex> index;
  StepRowsPtr rows;
};

// What of a step runs again, in an order that does not count.
simulator::Structure sorted(simulator::Structure structure) {
  std::sort(structure.recompute.begin(), structure.recompute.end());
  std::sort(structure.ops.begin(), structure.ops.end());
  return structure;
}

Result<Unrolled> unrolled(const TracePtr& trace, const PlanState& state,
                          const SimulatedPtr& before) {
  Result<simulator::Structure> structure =
      state.decisions ? Result<simulator::Structure>(structure_of(trace->trace, *state.decisions))
                      : simulator::structure_of(trace->trace, state.plan);
  if (!structure) return std::move(structure).error();
  if (!structure->runs_again() && structure->host_updates.empty()) {
    return Unrolled{std::shared_ptr<const simulator::StepIndex>(trace, &trace->index), nullptr};
  }
  if (before && before->trace == trace && before->rows &&
      sorted(simulator::structure_of(before->index->step())) == sorted(*structure)) {
    return Unrolled{before->index, before->rows};
  }
  Result<simulator::Step> step = simulator::unroll(trace->trace, *structure);
  if (!step) {
    Error error = std::move(step).error();
    if (error.pointer.empty() && !state.decisions) {
      error.pointer = structure->recompute.empty() ? "/saved" : "/recompute";
    }
    return error;
  }
  auto index = std::make_shared<const simulator::StepIndex>(*step);
  return Unrolled{std::move(index), std::make_shared<const StepRows>(std::move(step).value())};
}

struct Lowered {
  simulator::Lowering lowering;
  std::shared_ptr<const PlanDecisions> decisions;  // null of rows: they are at hand
};

Result<Lowered> lowered_rows(const simulator::StepIndex& index, const PlanDecisions& decisions,
                             simulator::PlacementMode placement) {
  Result<simulator::Lowering> lowering = simulator::lower(index, in_step(index, decisions));
  if (!lowering) return std::move(lowering).error();
  lowering->schedule.placement = placement;
  return Lowered{std::move(lowering).value(), nullptr};
}

Result<Lowered> lowered_rules(const TraceData& data, const simulator::StepIndex& index,
                              const simulator::Plan& plan) {
  Result<simulator::Decisions> resolved = simulator::resolve(index.trace(), plan);
  if (!resolved) return std::move(resolved).error();
  // A rule may be about what segments own alone, which is refused.
  Result<simulator::Lowering> lowering = index.step().is_recording()
                                             ? simulator::lower(index, *resolved)
                                             : simulator::lower(index, plan);
  if (!lowering) return std::move(lowering).error();
  lowering->schedule.placement = plan.placement;
  return Lowered{std::move(lowering).value(),
                 std::make_shared<const PlanDecisions>(in_recording(index, data.calls, *resolved))};
}

}  // namespace

Error interrupted() {
  return {ErrorCode::interrupted, "cancelled", "", "", ""};
}

PlanState fresh_state(const Trace& trace) {
  PlanState state;
  for (simulator::Structure::Parts& each : simulator::recorded_parts(trace)) {
    state.plan.micro_batches.push_back({std::move(each.segment), each.parts});
  }
  state.plan.placement = planner::usual_placement(trace);
  state.plan.budget.on = planner::usual_counter(trace, state.plan.placement);
  return state;
}

Bytes Simulated::peak() const {
  return planner::peak_of(result, plan().budget.on);
}

Result<SimulatedPtr> simulate(TracePtr trace, PlanStatePtr state, const std::stop_token& stop,
                              const SimulatedPtr& before) {
  if (stop.stop_requested()) return interrupted();
  if (!state->plan.budget.device && !state->plan.budget.device_text.empty()) {
    PlanState with_bytes = *state;
    const TraceData& whole = trace->whole ? *trace->whole : *trace;
    if (const Status known = planner::resolve_budget(whole.index, trace->sha256, with_bytes.plan);
        !known) {
      return known.error();
    }
    state = std::make_shared<const PlanState>(std::move(with_bytes));
  }
  const std::string& made_for = state->plan.target.fingerprint;
  if (!made_for.empty() && made_for != trace->fingerprint()) {
    return Error{ErrorCode::bad_input,
                 "the plan was made for other saved tensors than the trace has", state->file,
                 "/for/fingerprint", "open the trace it was made for, or plan again"};
  }
  if (!simulator::is_in_parts(trace->trace, simulator::parts_of(state->plan))) {
    return Error{ErrorCode::bad_input, "the plan runs in other micro-batches than the step shown",
                 state->file, "/micro_batches", "open the plan, or plan again"};
  }
  const auto in_its_file = [&state](Error error) {
    if (error.file.empty()) error.file = state->file;
    return error;
  };
  Result<Unrolled> step = unrolled(trace, *state, before);
  if (!step) return in_its_file(std::move(step).error());
  if (stop.stop_requested()) return interrupted();
  Result<Lowered> lowered =
      state->decisions ? lowered_rows(*step->index, *state->decisions, state->plan.placement)
                       : lowered_rules(*trace, *step->index, state->plan);
  if (!lowered) return in_its_file(std::move(lowered).error());
  if (stop.stop_requested()) return interrupted();
  auto decisions = state->decisions ? state->decisions : std::move(lowered->decisions);
  report::Replayed replayed =
      report::replayed(*step->index, std::move(lowered->lowering), state->plan.budget);
  std::optional<report::Reserved> reserved;
  if (trace->trace.setup.size() > 0) {
    reserved = report::reserved_bytes(*step->index, replayed.schedule, replayed.result);
  }
  return std::make_shared<const Simulated>(
      Simulated{std::move(replayed), std::move(trace), std::move(state), std::move(decisions),
                std::move(step->index), std::move(step->rows), reserved});
}

std::optional<Nanoseconds> lower_bound_of(const Simulated& simulated) {
  const PlanState& state = *simulated.state;
  const TraceData& data = *simulated.trace;
  // Another recording with the same saved tensors has other times.
  if (!state.plan.target.trace.empty() && state.plan.target.trace != data.sha256) return {};
  const bool holds = state.proved_on ? same_machine(*state.proved_on, data.trace.calibration)
                                     : data.machine == MachineKind::recorded;
  return holds ? state.plan.lower_bound_step : std::nullopt;
}

simulator::Plan plan_for_writing(const Simulated& simulated, const std::string& plan_file) {
  simulator::Plan plan = simulated.plan();
  const Trace& trace = simulated.trace->trace;
  if (simulated.state->decisions) {
    const simulator::Structure structure = structure_of(trace, *simulated.decisions);
    const simulator::StepIndex& index = *simulated.index;
    plan.recompute = simulator::recompute_rules(trace, structure);
    plan.saved = simulator::op_rules(trace, structure);
    const auto moved = simulator::to_rules(index.trace(), in_step(index, *simulated.decisions),
                                           index.of_segment());
    plan.saved.insert(plan.saved.end(), moved.begin(), moved.end());
    plan.parameters = simulator::to_parameters(trace, simulated.decisions->parameters);
    plan.gradients = simulator::to_gradient_rules(trace, simulated.decisions->gradients);
    plan.optimizer = simulator::to_optimizer_rules(trace, simulated.decisions->optimizer);
  }
  // What a search proved is of its own plan, and a file's reader takes it for the recorded
  // machine's.
  const bool is_proved = !simulated.state->decisions && lower_bound_of(simulated) &&
                         simulated.trace->machine == MachineKind::recorded;
  if (!is_proved) {
    plan.lower_bound_step.reset();
    plan.gap_ppm.reset();
  }
  const TraceData& data = *simulated.trace;
  std::string trace_file = std::move(plan.target.trace_file);
  plan.target = simulator::target_of(trace);
  plan.target.fingerprint = data.fingerprint();
  plan.target.trace = data.sha256;
  plan.target.trace_file = data.path.empty() || plan_file.empty()
                               ? std::move(trace_file)
                               : report::trace_file_for(data.path, plan_file);
  plan.predicted = planner::predicted_of(simulated.result);
  return plan;
}

}  // namespace stowage::gui
