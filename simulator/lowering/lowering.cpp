#include "simulator/lowering/lowering.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "simulator/lowering/automatic_points.h"
#include "simulator/lowering/model_state_stays.h"
#include "simulator/lowering/named_points.h"
#include "simulator/lowering/offload_groups.h"
#include "simulator/lowering/schedule_builder.h"
#include "simulator/lowering/tenant_makers.h"
#include "simulator/lowering/touching_stays.h"
#include "simulator/machine/link_model.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"

namespace stowage::simulator {
namespace {

Result<Movement> saved_tensors(const StepIndex& index, const Decisions& decisions,
                               const std::vector<bool>& taken) {
  Movement movement = group_offloads(index, decisions, taken);
  const Status placed = place_named_points(index, decisions, movement);
  if (!placed) return placed.error();
  return movement;
}

Result<Movement> parameters(const StepIndex& index, const Decisions& decisions,
                            const std::vector<bool>& /*taken*/) {
  Movement movement = parameter_stays(index, decisions.parameters,
                                      HostUpdatePlaces(index, decisions.optimizer.updated_on_host));
  merge_touching(index, movement);
  return movement;
}

Result<Movement> optimizer_state(const StepIndex& index, const Decisions& decisions,
                                 const std::vector<bool>& /*taken*/) {
  Movement movement = optimizer_state_stays(index, decisions.optimizer);
  merge_touching(index, movement);
  return movement;
}

Result<Movement> gradients(const StepIndex& index, const Decisions& decisions,
                           const std::vector<bool>& /*taken*/) {
  Movement movement = gradient_stays(index, decisions.gradients,
                                     HostUpdatePlaces(index, decisions.optimizer.updated_on_host));
  merge_touching(index, movement);
  return movement;
}

constexpr TenantMaker kTenantMakers[] = {saved_tensors, parameters, optimizer_state, gradients};

// `part` behind what there is.
void append(Movement& movement, Movement part) {
  if (movement.tenants.empty() && movement.notes.empty()) {
    movement = std::move(part);
    return;
  }
  for (PlacedStay& stay : part.stays) {
    stay.tenant.value += static_cast<std::int32_t>(movement.tenants.size());
  }
  std::move(part.tenants.begin(), part.tenants.end(), std::back_inserter(movement.tenants));
  std::move(part.stays.begin(), part.stays.end(), std::back_inserter(movement.stays));
  std::move(part.notes.begin(), part.notes.end(), std::back_inserter(movement.notes));
}

// A rule that moves nothing but what segments own was not meant so.
Status check_owners(const StepIndex& index, const Plan& plan, const Decisions& decisions) {
  std::vector<SavedId> owned(plan.saved.size());
  std::vector<bool> has_other(plan.saved.size(), false);
  for (std::size_t s = 0; s < decisions.saved.size(); ++s) {
    if (decisions.saved[s].rule < 0) continue;
    const auto rule = static_cast<std::size_t>(decisions.saved[s].rule);
    if (plan.saved[rule].decision == Decision::recompute) continue;
    if (index.is_of_segment(SavedId(s))) {
      owned[rule] = SavedId(s);
    } else {
      has_other[rule] = true;
    }
  }
  for (std::size_t rule = 0; rule < plan.saved.size(); ++rule) {
    if (!owned[rule].valid() || has_other[rule]) continue;
    const Trace& trace = index.trace();
    if (trace.saved.ordinal[owned[rule].index()] < 0) {
      return Error{ErrorCode::bad_input,
                   trace.string(trace.saved.site[owned[rule].index()]) +
                       " is what a segment within another is given: that one's run makes it again, "
                       "and nothing moves it",
                   "", "/saved/" + std::to_string(rule),
                   "leave the rule out, or name what the outermost segment is given"};
    }
    return Error{ErrorCode::bad_input,
                 "the rule moves nothing: " + trace.string(trace.saved.site[owned[rule].index()]) +
                     " and what else it decides about belong to segments that run again",
                 "", "/saved/" + std::to_string(rule),
                 "leave the rule out, or name what a segment is given (\"LAYER#in0\")"};
  }
  return Unit{};
}

// Of tensors whose reload point is ahead of where they leave, so that they come back at once.
void note_early_loads(Movement& movement) {
  std::vector<PeriodPosition> evict(movement.tenants.size(), kNoPosition);
  for (const PlacedStay& stay : movement.stays) {
    if (stay.is_made) evict[stay.tenant.index()] = stay.evict;
  }
  for (const PlacedStay& stay : movement.stays) {
    if (!stay.serves_unpacks() || stay.wanted_load == kNoPosition) continue;
    if (stay.wanted_load >= evict[stay.tenant.index()]) continue;
    for (const SavedId saved : movement.tenants[stay.tenant.index()].saved) {
      movement.notes.push_back(
          {saved, "frees nothing: its reload point lies ahead of where it leaves"});
    }
  }
}

Error not_done_here(std::string pointer) {
  return {ErrorCode::bad_input, "the plan computes another step, which is not done here", "",
          std::move(pointer), "use stowage simulate, execute or verify, or leave it out"};
}

}  // namespace

std::string subject_of(const Trace& trace, const LoweringNote& note) {
  if (note.saved.valid()) return trace.string(trace.saved.site[note.saved.index()]);
  const StorageId owner = trace.storages.parameter[note.storage.index()];
  const bool is_parameter = !owner.valid();
  const LayerId layer = trace.storages.layer[(is_parameter ? note.storage : owner).index()];
  const bool is_gradient =
      trace.storages.storage_class[note.storage.index()] == StorageClass::gradient;
  return std::string(is_gradient    ? "gradient of "
                     : is_parameter ? "parameter of "
                                    : "optimizer state of ") +
         (layer.valid() ? trace.string(trace.layers.name[layer.index()])
                        : std::string("no layer")) +
         " (storage " + std::to_string(note.storage.value) + ")";
}

std::span<const TenantMaker> tenant_makers() {
  return kTenantMakers;
}

namespace {

// The same without updates on the host that are none there: the step has them, or has none of them.
Result<Decisions> with_updates_of(const StepIndex& index, const Decisions& all,
                                  std::vector<LoweringNote>& notes) {
  Decisions decisions = all;
  std::vector<bool>& updated = decisions.optimizer.updated_on_host;
  const std::vector<StorageId>& on_host = index.step().host_updates();
  std::optional<DeviceUpdates> on_device;
  for (std::size_t s = 0; s < updated.size(); ++s) {
    if (!updated[s]) continue;
    const StorageId recorded = index.step().origin(StorageId(s)).row;
    if (std::find(on_host.begin(), on_host.end(), recorded) != on_host.end()) continue;
    if (!on_device) on_device.emplace(index);
    const std::string& reason = on_device->reason_to_stay(StorageId(s));
    if (reason.empty()) return not_done_here("/optimizer");
    notes.push_back({{}, "its update " + reason, StorageId(s)});
    updated[s] = false;
  }
  return decisions;
}

}  // namespace

Result<Lowering> lower(const StepIndex& index, const Decisions& all,
                       std::span<const TenantMaker> makers) {
  const Trace& trace = index.trace();
  STOWAGE_ASSERT(all.parameters.shard_of.empty() ||
                 all.parameters.shard_of.size() == trace.storages.size());
  STOWAGE_ASSERT(all.optimizer.state_streams.empty() ||
                 all.optimizer.state_streams.size() == trace.storages.size());
  STOWAGE_ASSERT(all.optimizer.updated_on_host.empty() ||
                 all.optimizer.updated_on_host.size() == trace.storages.size());
  STOWAGE_ASSERT(all.gradients.at_home.empty() ||
                 all.gradients.at_home.size() == trace.storages.size());
  std::vector<LoweringNote> notes;
  std::optional<Decisions> changed;
  if (!all.optimizer.updated_on_host.empty()) {
    Result<Decisions> found = with_updates_of(index, all, notes);
    if (!found) return std::move(found).error();
    changed = std::move(found).value();
  }
  const Decisions& decisions = changed ? *changed : all;
  std::vector<bool> taken(trace.storages.size(), false);
  std::vector<Movement> parts(makers.size());
  for (std::size_t i = makers.size(); i-- > 0;) {
    auto part = makers[i](index, decisions, taken);
    if (!part) return std::move(part).error();
    for (const Tenant& tenant : part->tenants) taken[tenant.storage.index()] = true;
    parts[i] = std::move(*part);
  }
  Movement movement;
  for (Movement& part : parts) append(movement, std::move(part));
  if (!movement.tenants.empty() &&
      (!is_usable(trace.calibration.d2h) || !is_usable(trace.calibration.h2d))) {
    return Error{ErrorCode::bad_input, "the trace has no calibration of the link", "",
                 "/calibration", "record it again with `stowage profile`"};
  }
  place_movement(index, decisions.budget, movement);
  note_early_loads(movement);
  std::move(movement.notes.begin(), movement.notes.end(), std::back_inserter(notes));
  return Lowering{build_schedule(index, std::move(movement)), std::move(notes)};
}

Result<Lowering> lower(const StepIndex& index, const Decisions& decisions) {
  return lower(index, decisions, tenant_makers());
}

Result<Lowering> lower(const StepIndex& index, const Plan& plan) {
  const Trace& trace = index.trace();
  const Trace& recording = index.step().recording();
  const std::vector<Structure::Parts> parts = parts_of(plan);
  if (!parts.empty() && !is_in_parts(recording, parts)) return not_done_here("/micro_batches");
  // In micro-batches the step was unrolled from the recording that the plan is for.
  if (parts.empty()) {
    if (Status fits = check_fingerprint(plan, recording); !fits) return std::move(fits).error();
  }
  const bool is_unrolled = !index.step().segments().empty();
  if (!plan.recompute.empty() && !is_unrolled) return not_done_here("/recompute");
  const auto decisions = resolve(trace, plan);
  if (!decisions) return decisions.error();
  for (const SavedDecision& each : decisions->saved) {
    if (each.decision != Decision::recompute || is_unrolled) continue;
    return not_done_here("/saved/" + std::to_string(each.rule));
  }
  if (Status owners = check_owners(index, plan, *decisions); !owners) return owners.error();
  Result<Lowering> lowering = lower(index, *decisions);
  if (lowering) lowering->schedule.placement = plan.placement;
  return lowering;
}

}  // namespace stowage::simulator
