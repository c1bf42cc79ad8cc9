#include "planner/updates_on_host.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/host_update_bound.h"
#include "simulator/machine/link_model.h"
#include "simulator/machine/rest_gain.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/unroll.h"

namespace stowage::planner {

std::unique_ptr<UpdatesOnHost> UpdatesOnHost::make(const simulator::StepIndex& recorded,
                                                   const PlanRequest& request,
                                                   const StructurePool& pool, bool can_run_again,
                                                   BestPlan& best) {
  const Trace& recording = recorded.trace();
  const Calibration& link = recording.calibration;
  if (!request.allowed.optimizer || !recorded.step().is_recording()) return nullptr;
  if (!simulator::is_usable(link.d2h) || !simulator::is_usable(link.h2d)) return nullptr;
  if (!has_updates(recording)) return nullptr;
  simulator::Structure structure;
  const simulator::DeviceUpdates updates(recorded);
  for (const StorageId parameter : updates.parameters()) {
    if (updates.reason_to_stay(parameter).empty()) structure.host_updates.push_back(parameter);
  }
  if (structure.host_updates.empty()) return nullptr;
  const Result<simulator::Step> step = simulator::unroll(recording, structure);
  if (!step) return nullptr;
  auto index = std::make_shared<const simulator::StepIndex>(*step);
  return std::unique_ptr<UpdatesOnHost>(
      new UpdatesOnHost(std::move(index), request, pool, can_run_again, best));
}

UpdatesOnHost::UpdatesOnHost(std::shared_ptr<const simulator::StepIndex> index,
                             const PlanRequest& request, const StructurePool& pool,
                             bool can_run_again, BestPlan& best)
    : climber_(index, request, pool, best), floor_(climber_.base().floor()) {
  if (can_run_again) {
    any_structure_.emplace(*index, request.budget_on, request.allowed);
    floor_ = memory_floor(*any_structure_);
  }
  const Ppm boost = simulator::rest_gain(index->trace().calibration).boost;
  const Ppm fastest = boost == kPpm ? kPpm : kPpm * kPpm / boost - 1;
  shortest_ = std::max(index->resident_time().back(), shortest_with_host_updates(*index, fastest));
}

Nanoseconds UpdatesOnHost::shortest_step(Bytes budget, Nanoseconds known) const {
  if (shortest_ >= known) return shortest_;
  return planner::shortest_step(any_structure_ ? *any_structure_ : climber_.base().footprints(),
                                budget);
}

bool has_updates(const Trace& recording) {
  const std::vector<EventKind>& kinds = recording.events.kind;
  return std::find(kinds.begin(), kinds.end(), EventKind::parameter_update_begin) != kinds.end();
}

}  // namespace stowage::planner
