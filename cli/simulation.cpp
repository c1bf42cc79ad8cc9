#include "cli/simulation.h"

#include <algorithm>

#include "planner/planner.h"
#include "simulator/decisions.h"
#include "simulator/hazards.h"
#include "simulator/lowering.h"

namespace stowage::cli {
namespace {

std::vector<StallRow> stall_rows(const Trace& trace, const simulator::Schedule& schedule,
                                 const simulator::ReplayResult& result) {
  std::vector<StallRow> rows;
  for (const simulator::Stall& stall : result.stalls) {
    const Moment at = moment_at(trace, stall.event);
    StallRow row;
    row.site = name_of_copy(trace, schedule, stall.offload, stall.residency);
    row.copy_back = stall.residency.valid() ? !stall.is_store : stall.reload.valid();
    row.layer = at.layer;
    row.phase = at.phase ? stowage::name_of(*at.phase) : "step";
    row.event = stall.event;
    row.start = stall.start;
    row.duration = stall.duration;
    row.bytes = bytes_of_copy(schedule, stall.offload, stall.residency);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const StallRow& a, const StallRow& b) { return a.duration > b.duration; });
  return rows;
}

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

std::string name_of_copy(const Trace& trace, const simulator::Schedule& schedule, OffloadId offload,
                         ResidencyId residency) {
  if (residency.valid()) {
    const ParameterId parameter = schedule.residencies[residency.index()].parameter;
    const StorageId storage = schedule.parameters[parameter.index()].storage;
    const LayerId layer = trace.storages.layer[storage.index()];
    return "parameter of " +
           (layer.valid() ? trace.string(trace.layers.name[layer.index()]) : std::string("-"));
  }
  if (!offload.valid()) return "-";
  const auto& saved = schedule.offloads[offload.index()].saved;
  return saved.empty() ? "-" : trace.string(trace.saved.site[saved.front().index()]);
}

Bytes bytes_of_copy(const simulator::Schedule& schedule, OffloadId offload, ResidencyId residency) {
  if (residency.valid()) {
    return schedule.parameters[schedule.residencies[residency.index()].parameter.index()].bytes;
  }
  return offload.valid() ? schedule.offloads[offload.index()].bytes : 0;
}

Result<Simulation> simulate(const simulator::TraceIndex& index, const simulator::Plan& plan,
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
  simulation.stalls = stall_rows(trace, simulation.schedule, simulation.result);
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

MemoryCurve curve_of(const simulator::ReplayDetail& detail, Nanoseconds step) {
  return {detail.time, detail.requested, step};
}

}  // namespace stowage::cli
