#include "simulator/lowering/named_points.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/lowering/point_events.h"

namespace stowage::simulator {
namespace {

class NamedPoints {
 public:
  NamedPoints(const StepIndex& index, const Decisions& decisions, Movement& movement)
      : index_(index),
        trace_(index.trace()),
        decisions_(decisions),
        movement_(movement),
        points_(index.trace()) {}

  Status run() {
    for (PlacedStay& stay : movement_.stays) {
      Status placed = stay.is_made ? place_evict(stay) : place_load(stay);
      if (!placed) return placed;
    }
    return Unit{};
  }

 private:
  // Of several saved tensors that share one copy the first decides when it leaves.
  Status place_evict(PlacedStay& stay) {
    const SavedId saved = movement_.tenants[stay.tenant.index()].saved.front();
    const SavedDecision& decision = decisions_.saved[saved.index()];
    const EventId pack = trace_.saved.event[saved.index()];
    const auto fix = [&](Place place) {
      stay.latest_evict = std::min(stay.latest_evict, position_of(place));
      stay.earliest_evict = stay.latest_evict;
      return Unit{};
    };
    if (decision.release.kind == ReleasePoint::Kind::point) {
      const auto events = points_.find(decision.release.point);
      if (!events) return at(decision, "release", events.error());
      const auto event = std::lower_bound(events->begin(), events->end(), pack);
      if (event != events->end()) return fix({index_.next_anchor(*event), Side::after});
      return at(
          decision, "release",
          {ErrorCode::bad_input, "the release point lies before " + site(saved) + " is packed", "",
           "", "name a point after the pack, or \"auto\""});
    }
    const auto& unpacks = trace_.unpacks.event;  // in order of event
    const auto unpack = std::upper_bound(unpacks.begin(), unpacks.end(), pack);
    if (unpack != unpacks.end()) {
      stay.latest_evict = std::min(stay.latest_evict, position_of({*unpack, Side::before}));
    }
    if (decision.release.kind == ReleasePoint::Kind::automatic) return Unit{};
    find_packs();
    const auto own = std::lower_bound(packs_.begin(), packs_.end(), pack) - packs_.begin();
    const auto row =
        static_cast<std::size_t>(own) + static_cast<std::size_t>(std::max(decision.release.lag, 0));
    if (row < packs_.size()) return fix({packs_[row], Side::after});
    stay.earliest_evict = stay.latest_evict;
    return Unit{};
  }

  // Of several saved tensors that share one copy the one that is unpacked first decides. A copy on
  // the compute stream or a blocking one gains nothing from running early: on demand.
  Status place_load(PlacedStay& stay) {
    const SavedId saved = trace_.unpacks.saved[stay.unpacks.front().index()];
    const SavedDecision& decision = decisions_.saved[saved.index()];
    if (stay.load_mode != CopyMode::lane || decision.reload.kind == ReloadPoint::Kind::unpack) {
      stay.wanted_load = stay.await;
    }
    if (decision.reload.kind != ReloadPoint::Kind::point) return Unit{};
    const EventId await = trace_.unpacks.event[stay.unpacks.front().index()];
    const auto events = points_.find(decision.reload.point);
    if (!events) return at(decision, "reload", events.error());
    const auto later = std::upper_bound(events->begin(), events->end(), await);
    if (later == events->begin()) {
      return at(decision, "reload",
                {ErrorCode::bad_input,
                 "the reload point lies after " + site(saved) + " is first unpacked", "", "",
                 "name an earlier point, \"unpack\" or \"auto\""});
    }
    const EventId anchor = index_.previous_anchor(*std::prev(later));
    stay.wanted_load = std::min(stay.await, position_of({anchor, Side::after}));
    return Unit{};
  }

  // The packs of the saved tensors that leave, in order.
  void find_packs() {
    if (!packs_.empty()) return;
    for (const Tenant& tenant : movement_.tenants) {
      for (const SavedId s : tenant.saved) packs_.push_back(trace_.saved.event[s.index()]);
    }
    std::sort(packs_.begin(), packs_.end());
  }

  [[nodiscard]] static Error at(const SavedDecision& decision, const char* key, Error error) {
    if (decision.rule >= 0) {
      error.pointer = "/saved/" + std::to_string(decision.rule) + "/" + key;
    }
    return error;
  }

  [[nodiscard]] const std::string& site(SavedId s) const {
    return trace_.string(trace_.saved.site[s.index()]);
  }

  const StepIndex& index_;
  const Trace& trace_;
  const Decisions& decisions_;
  Movement& movement_;
  PointEvents points_;
  std::vector<EventId> packs_;
};

}  // namespace

Status place_named_points(const StepIndex& index, const Decisions& decisions, Movement& movement) {
  return NamedPoints(index, decisions, movement).run();
}

}  // namespace stowage::simulator
