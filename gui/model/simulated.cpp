#include "gui/model/simulated.h"

#include <algorithm>
#include <utility>

#include "planner/planner.h"
#include "report/plans_trace.h"
#include "simulator/machine/calibration_settings.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/step/plan_structure.h"

namespace stowage::gui {
namespace {

// In all that a person can set.
bool same_machine(const Calibration& a, const Calibration& b) {
  const auto& settings = simulator::calibration_settings();
  return std::all_of(settings.begin(), settings.end(), [&](const auto& setting) {
    return simulator::setting_value(a, setting.name) == simulator::setting_value(b, setting.name);
  });
}

}  // namespace

Error interrupted() {
  return {ErrorCode::interrupted, "cancelled", "", "", ""};
}

Bytes Simulated::peak() const {
  return planner::peak_of(result, plan().budget.on);
}

Result<SimulatedPtr> simulate(TracePtr trace, PlanStatePtr state, const std::stop_token& stop) {
  if (stop.stop_requested()) return interrupted();
  if (!state->plan.budget.device && !state->plan.budget.device_text.empty()) {
    PlanState with_bytes = *state;
    if (const Status known = planner::resolve_budget(trace->index, with_bytes.plan); !known) {
      return known.error();
    }
    state = std::make_shared<const PlanState>(std::move(with_bytes));
  }
  const std::string& made_for = state->plan.target.fingerprint;
  if (!made_for.empty() && made_for != trace->trace.fingerprint) {
    return Error{ErrorCode::bad_input,
                 "the plan was made for other saved tensors than the trace has", state->file,
                 "/for/fingerprint", "open the trace it was made for, or plan again"};
  }
  const auto in_its_file = [&state](Error error) {
    if (error.file.empty()) error.file = state->file;
    return error;
  };
  const Result<simulator::Structure> structure = simulator::structure_of(trace->trace, state->plan);
  if (!structure) return in_its_file(structure.error());
  if (structure->runs_again()) {
    return Error{ErrorCode::bad_input, "the plan computes again, which has no rows here yet",
                 state->file, state->plan.recompute.empty() ? "/saved" : "/recompute",
                 "stowage simulate shows it"};
  }
  std::shared_ptr<const simulator::Decisions> decisions = state->decisions;
  if (!decisions) {
    Result<simulator::Decisions> resolved = simulator::resolve(trace->trace, state->plan);
    if (!resolved) return in_its_file(resolved.error());
    decisions = std::make_shared<const simulator::Decisions>(std::move(resolved).value());
  }
  if (stop.stop_requested()) return interrupted();
  Result<simulator::Lowering> lowered = simulator::lower(trace->index, *decisions);
  if (!lowered) return in_its_file(lowered.error());
  if (stop.stop_requested()) return interrupted();
  report::Replayed replayed =
      report::replayed(trace->index, std::move(lowered).value(), state->plan.budget);
  return std::make_shared<const Simulated>(
      Simulated{std::move(replayed), std::move(trace), std::move(state), std::move(decisions)});
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
    plan.saved = simulator::to_rules(trace, *simulated.decisions);
    plan.parameters = simulator::to_parameters(trace, simulated.decisions->parameters);
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
  plan.target.trace = data.sha256;
  plan.target.trace_file = data.path.empty() || plan_file.empty()
                               ? std::move(trace_file)
                               : report::trace_file_for(data.path, plan_file);
  plan.predicted = planner::predicted_of(simulated.result);
  return plan;
}

}  // namespace stowage::gui
