#include "simulator/lowering/lowering.h"

#include <algorithm>
#include <utility>

#include "simulator/lowering/automatic_points.h"
#include "simulator/lowering/offload_groups.h"
#include "simulator/lowering/parameter_stays.h"
#include "simulator/lowering/point_events.h"
#include "simulator/lowering/schedule_builder.h"
#include "simulator/machine/link_model.h"
#include "simulator/schedule/saved_tensor_tenant.h"

namespace stowage::simulator {
namespace {

// Turns the points that decisions name into places; `auto` stays absent.
class PointPlacer {
 public:
  PointPlacer(const StepIndex& index, const Decisions& decisions, const Movement& movement)
      : index_(index),
        trace_(index.trace()),
        decisions_(decisions),
        m_(movement),
        points_(index.trace()),
        latest_(latest_releases(index, movement.offloads, movement.reloads)) {
    for (const Offload& offload : m_.offloads) {
      for (const SavedId s : offload.saved) packs_.push_back(trace_.saved.event[s.index()]);
    }
    std::sort(packs_.begin(), packs_.end());
  }

  Result<FixedPoints> run() {
    FixedPoints fixed;
    for (std::size_t o = 0; o < m_.offloads.size(); ++o) {
      auto place = release_of(o);
      if (!place) return std::move(place).error();
      fixed.release.push_back(*place);
    }
    for (const Reload& reload : m_.reloads) {
      auto place = reload_of(reload);
      if (!place) return std::move(place).error();
      fixed.start_reload.push_back(*place);
    }
    return fixed;
  }

 private:
  using MaybePlace = std::optional<Place>;

  // Of several saved tensors that share one copy the first decides when it leaves.
  Result<MaybePlace> release_of(std::size_t o) {
    const SavedId saved = m_.offloads[o].saved.front();
    const SavedDecision& decision = decisions_.saved[saved.index()];
    const EventId pack = trace_.saved.event[saved.index()];
    switch (decision.release.kind) {
      case ReleasePoint::Kind::automatic:
        return MaybePlace{};
      case ReleasePoint::Kind::pack: {
        const auto own = std::lower_bound(packs_.begin(), packs_.end(), pack) - packs_.begin();
        const auto row = static_cast<std::size_t>(own) +
                         static_cast<std::size_t>(std::max(decision.release.lag, 0));
        if (row >= packs_.size()) return MaybePlace{latest_.any[o]};
        return MaybePlace{std::min(latest_.any[o], Place{packs_[row], Side::after})};
      }
      case ReleasePoint::Kind::point:
        break;
    }
    const auto events = points_.find(decision.release.point);
    if (!events) return at(decision, "release", events.error());
    const auto event = std::lower_bound(events->begin(), events->end(), pack);
    if (event == events->end()) {
      return at(
          decision, "release",
          {ErrorCode::bad_input, "the release point lies before " + site(saved) + " is packed", "",
           "", "name a point after the pack, or \"auto\""});
    }
    return MaybePlace{std::min(latest_.own[o], Place{index_.next_anchor(*event), Side::after})};
  }

  // Of several saved tensors that share one copy the one that is unpacked first decides.
  Result<MaybePlace> reload_of(const Reload& reload) {
    const UnpackId unpack = reload.unpacks.front();
    const SavedId saved = trace_.unpacks.saved[unpack.index()];
    const SavedDecision& decision = decisions_.saved[saved.index()];
    const Place await = await_place(trace_, reload.unpacks);
    switch (decision.reload.kind) {
      case ReloadPoint::Kind::automatic:
        return MaybePlace{};
      case ReloadPoint::Kind::unpack:
        return MaybePlace{await};
      case ReloadPoint::Kind::point:
        break;
    }
    const auto events = points_.find(decision.reload.point);
    if (!events) return at(decision, "reload", events.error());
    const auto later = std::upper_bound(events->begin(), events->end(), await.event);
    if (later == events->begin()) {
      return at(decision, "reload",
                {ErrorCode::bad_input,
                 "the reload point lies after " + site(saved) + " is first unpacked", "", "",
                 "name an earlier point, \"unpack\" or \"auto\""});
    }
    const EventId anchor = index_.previous_anchor(*std::prev(later));
    return MaybePlace{anchor < await.event ? Place{anchor, Side::after} : await};
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
  const Movement& m_;
  PointEvents points_;
  LatestReleases latest_;
  std::vector<EventId> packs_;  // of saved tensors that are served by an offload
};

// Places everything. A stay that would start where the one before it ends goes on instead; then the
// others have more room and are placed again, a few times.
void place_all(const StepIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
               ParameterStays& stays, Movement& movement) {
  constexpr int kMostRounds = 4;
  for (int round = 1;; ++round) {
    movement.stays = stays.stays;
    place_movement(index, fixed, budget, movement);
    if (round == kMostRounds) {
      std::swap(stays.stays, movement.stays);
      merge_touching(index, stays);
      movement.stays = stays.stays;
      return;
    }
    if (!merge_where_placed(index, movement.stays, stays)) return;
  }
}

std::string described(const std::string& model, std::int64_t batch, const std::string& dtype) {
  std::string text = model.empty() ? "an unnamed model" : model;
  if (batch > 0) text += ", batch " + std::to_string(batch);
  if (!dtype.empty()) text += ", " + dtype;
  return text;
}

}  // namespace

std::string subject_of(const Trace& trace, const LoweringNote& note) {
  if (note.saved.valid()) return trace.string(trace.saved.site[note.saved.index()]);
  const LayerId layer = trace.storages.layer[note.parameter.index()];
  return "parameter of " +
         (layer.valid() ? trace.string(trace.layers.name[layer.index()])
                        : std::string("no layer")) +
         " (storage " + std::to_string(note.parameter.value) + ")";
}

Result<Lowering> lower(const StepIndex& index, const Decisions& decisions) {
  const Trace& trace = index.trace();
  STOWAGE_ASSERT(decisions.parameters.shard_of.empty() ||
                 decisions.parameters.shard_of.size() == trace.storages.size());
  ParameterStays stays = parameter_stays(index, decisions.parameters);
  merge_touching(index, stays);
  std::vector<bool> streamed(trace.storages.size(), false);
  for (const ParameterStay& stay : stays.stays) streamed[stay.storage.index()] = true;
  OffloadGroups groups = group_offloads(index, decisions, streamed);
  Movement movement;
  movement.offloads = std::move(groups.offloads);
  movement.reloads = std::move(groups.reloads);
  if (!movement.offloads.empty() || !stays.stays.empty()) {
    if (!is_usable(trace.calibration.d2h) || !is_usable(trace.calibration.h2d)) {
      return Error{ErrorCode::bad_input, "the trace has no calibration of the link", "",
                   "/calibration", "record it again with `stowage profile`"};
    }
  }
  auto fixed = PointPlacer(index, decisions, movement).run();
  if (!fixed) return std::move(fixed).error();
  place_all(index, *fixed, decisions.budget, stays, movement);
  std::vector<LoweringNote> notes = std::move(groups.notes);
  notes.insert(notes.end(), stays.notes.begin(), stays.notes.end());
  return Lowering{build_schedule(index, std::move(movement)), std::move(notes)};
}

Result<Lowering> lower(const StepIndex& index, const Plan& plan) {
  const Trace& trace = index.trace();
  const PlanTarget& target = plan.target;
  if (!target.fingerprint.empty() && target.fingerprint != trace.fingerprint) {
    return Error{ErrorCode::bad_input,
                 "the plan was made for " + described(target.model, target.batch, target.dtype) +
                     "; the trace is of " +
                     described(trace.run.model, trace.run.batch, trace.run.dtype) +
                     " and saves other tensors",
                 "", "/for/fingerprint", "plan again from this trace"};
  }
  const auto decisions = resolve(trace, plan);
  if (!decisions) return decisions.error();
  return lower(index, *decisions);
}

}  // namespace stowage::simulator
