#include "report/simulation.h"

#include <iterator>
#include <utility>

#include "planner/budget.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/hazards/hazards.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/plan_structure.h"

namespace stowage::report {
namespace {

// Rules that decide nothing: legal, and hardly what was meant. With their place, as an error has
// it.
std::vector<std::string> notes_of_shadowed_rules(const Trace& trace, const simulator::Plan& plan,
                                                 const std::string& plan_file) {
  std::vector<std::string> notes;
  for (const std::size_t rule : simulator::shadowed_rules(trace, plan)) {
    const Error note{ErrorCode::bad_input,
                     "decides nothing: earlier rules take all that it matches", plan_file,
                     "/saved/" + std::to_string(rule), ""};
    notes.push_back(note.text());
  }
  return notes;
}

// In planned memory also of what shares bytes.
std::vector<simulator::Hazard> hazards_of(const simulator::StepIndex& index,
                                          const simulator::Schedule& schedule) {
  if (schedule.placement == simulator::PlacementMode::caching) {
    return simulator::find_hazards(index, schedule);
  }
  const simulator::PlannedMemory memory = simulator::planned_memory(index, schedule);
  return simulator::find_hazards(index, schedule, memory.live, memory.placement);
}

}  // namespace

Replayed replayed(const simulator::StepIndex& index, simulator::Lowering lowering,
                  const simulator::PlanBudget& budget) {
  Replayed made;
  made.schedule = std::move(lowering.schedule);
  made.result = simulator::replay(index, made.schedule, &made.detail);
  for (const simulator::LoweringNote& note : lowering.notes) {
    made.notes.push_back(simulator::subject_of(index.trace(), note) + ": " + note.text);
  }
  if (!made.result.allocator_exact) made.notes.emplace_back(simulator::kAllocatorRemark);
  if (simulator::guesses_host_updates(index.trace(), made.result)) {
    made.notes.emplace_back(simulator::kHostUpdateRemark);
  }
  if (made.result.active_varies) made.notes.emplace_back(simulator::kActiveVariesRemark);
  made.device_kept = !budget.device || planner::peak_of(made.result, budget.on) <= *budget.device;
  made.host_kept = !budget.host || made.result.host_bytes <= *budget.host;
  return made;
}

Reserved reserved_bytes(const simulator::StepIndex& index, const simulator::Schedule& schedule,
                        const simulator::ReplayResult& result) {
  if (schedule.placement == simulator::PlacementMode::planned) {
    return {{result.peak_reserved, result.peak_active},
            simulator::replay_allocator(index, schedule).peak_reserved};
  }
  return {simulator::planned_bytes(index, schedule), result.peak_reserved};
}

Result<Simulation> simulate(const simulator::StepIndex& recorded, const simulator::Plan& plan,
                            const std::string& plan_file) {
  const auto named = [&plan_file](Error error) {
    if (error.file.empty()) error.file = plan_file;
    return error;
  };
  const Result<simulator::Step> step = simulator::unroll(recorded.step().recording(), plan);
  if (!step) return named(step.error());
  const auto unrolled = std::make_shared<const simulator::StepIndex>(*step);
  const simulator::StepIndex& index = *unrolled;
  Result<simulator::Lowering> lowered = simulator::lower(index, plan);
  if (!lowered) return named(lowered.error());
  const auto hazards = hazards_of(index, lowered->schedule);
  if (!hazards.empty()) {
    return Error{ErrorCode::bad_input,
                 std::string("the schedule is not safe: ") + name_of(hazards.front().kind) + ": " +
                     hazards.front().text,
                 plan_file, "", "a later release or an earlier reload orders the pair"};
  }
  const Trace& trace = index.trace();
  Simulation simulation{replayed(index, std::move(lowered).value(), plan.budget)};
  std::vector<std::string> of_rules = notes_of_shadowed_rules(trace, plan, plan_file);
  simulation.notes.insert(simulation.notes.begin(), std::make_move_iterator(of_rules.begin()),
                          std::make_move_iterator(of_rules.end()));
  simulation.index = unrolled;
  const simulator::Schedule resident = simulator::resident_schedule(recorded, plan.placement);
  simulation.resident = simulator::replay(recorded, resident);
  if (trace.setup.size() > 0) {
    simulation.reserved = reserved_bytes(index, simulation.schedule, simulation.result);
    simulation.resident_reserved = reserved_bytes(recorded, resident, simulation.resident);
  }
  simulation.stalls = explain_stalls(index, simulation.schedule, simulation.result,
                                     simulation.detail, plan.budget.device);
  simulation.peak_at = moment_at(index.step(), simulation.result.peak_event);
  if (simulation.result.peak_event.valid()) {
    simulation.peak_at.time = simulation.detail.time[simulation.result.peak_event.index()];
  }
  simulation.peak_at.requested = simulation.result.peak_requested;
  simulation.feasible = simulation.device_kept && simulation.host_kept;
  return simulation;
}

}  // namespace stowage::report
