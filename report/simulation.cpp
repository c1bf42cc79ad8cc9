#include "report/simulation.h"

#include "planner/planner.h"
#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/decisions.h"

namespace stowage::report {
namespace {

// Rules that lose every tensor to earlier ones: legal, and hardly what was meant.
std::vector<std::string> shadowed_rules(const Trace& trace, const simulator::Plan& plan) {
  const auto decisions = simulator::resolve(trace, plan);
  if (!decisions) return {};
  std::vector<bool> decides(plan.saved.size(), false);
  for (const simulator::SavedDecision& decision : decisions->saved) {
    if (decision.rule >= 0) decides[static_cast<std::size_t>(decision.rule)] = true;
  }
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < plan.saved.size(); ++i) {
    if (decides[i] || plan.saved[i].decision == simulator::Decision::keep) continue;
    notes.push_back("/saved/" + std::to_string(i) +
                    ": decides nothing: earlier rules take all that it matches");
  }
  return notes;
}

}  // namespace

Result<Simulation> simulate(const simulator::StepIndex& index, const simulator::Plan& plan,
                            const std::string& plan_file) {
  Result<simulator::Lowering> lowered = simulator::lower(index, plan);
  if (!lowered) {
    Error error = lowered.error();
    if (error.file.empty()) error.file = plan_file;
    return error;
  }
  Simulation simulation;
  simulation.schedule = std::move(lowered->schedule);
  const Trace& trace = index.trace();
  const auto hazards = simulator::find_hazards(index, simulation.schedule);
  if (!hazards.empty()) {
    return Error{ErrorCode::bad_input,
                 std::string("the schedule is not safe: ") + name_of(hazards.front().kind) + ": " +
                     hazards.front().text,
                 plan_file, "", "a later release or an earlier reload orders the pair"};
  }
  simulation.notes = shadowed_rules(trace, plan);
  for (const simulator::LoweringNote& note : lowered->notes) {
    simulation.notes.push_back(simulator::subject_of(trace, note) + ": " + note.text);
  }
  simulation.result = simulator::replay(index, simulation.schedule, &simulation.detail);
  simulation.resident = simulator::replay(index, simulator::resident_schedule(index));
  if (!simulation.result.allocator_exact) {
    simulation.notes.emplace_back(simulator::kAllocatorRemark);
  }
  if (simulation.result.active_varies) {
    simulation.notes.emplace_back(simulator::kActiveVariesRemark);
  }
  simulation.stalls = explain_stalls(index, simulation.schedule, simulation.result,
                                     simulation.detail, plan.budget.device);
  simulation.peak_at = moment_at(trace, simulation.result.peak_event);
  if (simulation.result.peak_event.valid()) {
    simulation.peak_at.time = simulation.detail.time[simulation.result.peak_event.index()];
  }
  simulation.peak_at.requested = simulation.result.peak_requested;
  const Bytes peak = planner::peak_of(simulation.result, plan.budget.on);
  simulation.device_kept = !plan.budget.device || peak <= *plan.budget.device;
  simulation.host_kept = !plan.budget.host || simulation.result.host_bytes <= *plan.budget.host;
  simulation.feasible = simulation.device_kept && simulation.host_kept;
  return simulation;
}

}  // namespace stowage::report
