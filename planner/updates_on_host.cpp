#include "planner/updates_on_host.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/host_update_bound.h"
#include "planner/pins.h"
#include "planner/streaming_layers.h"
#include "simulator/machine/link_model.h"
#include "simulator/machine/rest_gain.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/unroll.h"

namespace stowage::planner {

std::unique_ptr<UpdatesOnHost> UpdatesOnHost::make(const simulator::StepIndex& recorded,
                                                   const simulator::StepIndex& bounding,
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
  const Pins* const pinned = request.allowed.pinned.get();
  const std::vector<LayerId> layers = streaming_layers(recording);
  const auto stays = [&](StorageId parameter) {
    return pinned != nullptr && pinned->updates_on_device(layers[parameter.index()]);
  };
  for (const StorageId parameter : updates.parameters()) {
    if (!updates.reason_to_stay(parameter).empty() || stays(parameter)) continue;
    structure.host_updates.push_back(parameter);
  }
  const std::size_t already = pinned != nullptr ? pinned->structure().host_updates.size() : 0;
  if (structure.host_updates.size() <= already) return nullptr;
  const auto index_of = [&](const simulator::Structure& of) {
    const Result<simulator::Step> step = simulator::unroll(recording, of);
    return step ? std::make_shared<const simulator::StepIndex>(*step) : nullptr;
  };
  const auto updated = index_of(structure);
  const bool runs_again = pinned != nullptr && pinned->structure().runs_again();
  const auto settled = runs_again ? index_of(pinned->with_structure(structure)) : updated;
  if (updated == nullptr || settled == nullptr) return nullptr;
  std::unique_ptr<UpdatesOnHost> of_host(
      new UpdatesOnHost(settled, updated, MixedBound(bounding, structure.host_updates), request,
                        pool, can_run_again, best));
  of_host->mixed_ = MixedUpdates::make(recorded, structure.host_updates, request, best);
  return of_host;
}

UpdatesOnHost::UpdatesOnHost(std::shared_ptr<const simulator::StepIndex> settled,
                             std::shared_ptr<const simulator::StepIndex> updated,
                             MixedBound mixed_bound, const PlanRequest& request,
                             const StructurePool& pool, bool can_run_again, BestPlan& best)
    : climber_(std::move(settled), request, pool, best),
      updated_(std::move(updated)),
      floor_(climber_.base().floor()),
      mixed_bound_(std::move(mixed_bound)) {
  if (can_run_again) {
    any_structure_.emplace(*updated_, request.budget_on, request.allowed);
    floor_ = memory_floor(*any_structure_);
  }
  if (request.allowed.pinned) {
    const simulator::StepIndex& base = climber_.base().index();
    of_pins_.emplace(can_run_again ? *updated_ : base, base, request.budget_on, request.allowed,
                     can_run_again);
  }
  const Ppm boost = simulator::rest_gain(updated_->trace().calibration).boost;
  const Ppm fastest = boost == kPpm ? kPpm : kPpm * kPpm / boost - 1;
  shortest_ =
      std::max(updated_->resident_time().back(), shortest_with_host_updates(*updated_, fastest));
}

Nanoseconds UpdatesOnHost::shortest_step(Bytes budget, Nanoseconds known) const {
  if (shortest_ >= known) return shortest_;
  const Nanoseconds bound = planner::shortest_step(
      any_structure_ ? *any_structure_ : climber_.base().footprints(), budget);
  return of_pins_ ? std::max(bound, of_pins_->shortest_step(budget)) : bound;
}

Nanoseconds UpdatesOnHost::shortest(Nanoseconds resident) const {
  return least_of_all([&](Bytes) { return resident; }, 0, std::min(shortest_, resident));
}

Nanoseconds UpdatesOnHost::least_of_all(const MixedBound::Bound& on_device, Bytes budget,
                                        Nanoseconds of_both) const {
  if (!mixed_bound_.is_of_several()) return of_both;
  return mixed_bound_.shortest_step(on_device, budget, of_both);
}

bool has_updates(const Trace& recording) {
  const std::vector<EventKind>& kinds = recording.events.kind;
  return std::find(kinds.begin(), kinds.end(), EventKind::parameter_update_begin) != kinds.end();
}

}  // namespace stowage::planner
