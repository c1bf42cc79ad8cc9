#include "simulator/lowering/model_state_stays.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/model_state_uses.h"

namespace stowage::simulator {
namespace {

// What does a visit: a shard, or another layer that uses a tied weight.
using Group = std::int64_t;
using Visit = std::pair<PhaseId, Group>;

// Behind every place of a period and the next one.
constexpr PeriodPosition kNoLimit = std::numeric_limits<PeriodPosition>::max() / 2;

struct Span {
  Visit visit;
  PeriodPosition first = 0;
  PeriodPosition last = 0;
  PeriodPosition store = kNoPosition;
};

class Maker {
 public:
  // `updates`: where the host updates parameters.
  Maker(const StepIndex& index, const TenantKind& kind, const ParameterDecisions& decisions,
        const HostUpdatePlaces& updates)
      : index_(index),
        trace_(index.trace()),
        kind_(kind),
        decisions_(decisions),
        updates_(updates),
        period_(period_of(index.event_count())) {}

  Movement run() && {
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      if (mode_of(StorageId(s)) == StreamMode::off) continue;
      const std::string& reason = index_.model_state_uses().reason_to_stay(StorageId(s));
      if (reason.empty()) {
        add_spans(StorageId(s));
      } else {
        out_.notes.push_back({{}, reason, StorageId(s)});
      }
    }
    order_visits();
    out_.tenants.reserve(spans_.size());
    for (const auto& [storage, spans] : spans_) {
      kind_.is_made_anew ? add_stays_anew(storage, spans) : add_stays(storage, spans);
    }
    return std::move(out_);
  }

 private:
  // Where the host's update of a parameter, or with a gradient, may start.
  [[nodiscard]] PeriodPosition update_of(StorageId storage) const {
    const bool is_parameter =
        trace_.storages.storage_class[storage.index()] == StorageClass::parameter;
    return is_parameter == (&kind_ == &kParameter) ? updates_.of(storage) : kNoPosition;
  }
  // What the host updates has new bytes at home for each step: it is away behind backward at least.
  [[nodiscard]] StreamMode mode_of(StorageId storage) const {
    const StreamMode own = decisions_.mode_of(storage);
    if (update_of(storage) == kNoPosition) return own;
    if (own == StreamMode::off) return StreamMode::backward;
    return own == StreamMode::forward ? StreamMode::always : own;
  }
  [[nodiscard]] PhaseKind kind_of(PhaseId phase) const {
    return phase.valid() ? trace_.phases.kind[phase.index()] : PhaseKind::data;
  }

  // One is, or is inside, the other.
  [[nodiscard]] bool related(LayerId a, LayerId b) const {
    return !a.valid() || !b.valid() || contains(a, b) || contains(b, a);
  }
  [[nodiscard]] bool contains(LayerId outer, LayerId inner) const {
    while (inner.valid() && inner != outer) inner = trace_.layers.parent[inner.index()];
    return inner == outer;
  }

  [[nodiscard]] Group group_of(StorageId storage, const ModelStateTouch& touch) const {
    const Group own =
        decisions_.shard_of.empty() ? Group{-1} : Group{decisions_.shard_of[storage.index()]};
    const LayerId home = trace_.storages.layer[storage.index()];
    if (kind_of(touch.phase) == PhaseKind::optimizer || related(home, touch.layer)) return own;
    return -1 - Group{touch.layer.value};
  }

  void add_spans(StorageId storage) {
    std::vector<Span> spans;
    for (const ModelStateTouch& touch : index_.model_state_uses().touches_of(storage)) {
      const Visit visit{touch.phase, group_of(storage, touch)};
      const PeriodPosition first = position_of(touch.first);
      const PeriodPosition last = position_of(touch.last);
      auto at = std::find_if(spans.begin(), spans.end(),
                             [&](const Span& span) { return span.visit == visit; });
      if (at == spans.end()) at = spans.insert(at, {visit, first, last, kNoPosition});
      at->first = std::min(at->first, first);
      at->last = std::max(at->last, last);
      if (touch.writes) at->store = std::max(at->store, last);
      const auto [known, is_new] = begin_of_.emplace(visit, first);
      if (!is_new) known->second = std::min(known->second, first);
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.first < b.first; });
    std::vector<Span> apart;
    for (const Span& span : spans) {
      if (apart.empty() || span.first > apart.back().last) {
        apart.push_back(span);
        continue;
      }
      apart.back().last = std::max(apart.back().last, span.last);
      apart.back().store = std::max(apart.back().store, span.store);
    }
    spans_.emplace_back(storage, std::move(apart));
  }

  void order_visits() {
    for (const auto& [visit, begin] : begin_of_) visits_.emplace_back(begin, visit);
    std::sort(visits_.begin(), visits_.end());
    for (std::size_t v = 0; v < visits_.size(); ++v) number_of_[visits_[v].second] = v;
  }

  // It is away from the end of the one until the other one begins.
  [[nodiscard]] bool is_away_behind(const Span& span, const Span& next, bool over_the_end,
                                    StreamMode mode) const {
    if (mode == StreamMode::always) return true;
    const PhaseKind behind = kind_of(span.visit.first);
    const PhaseKind ahead = kind_of(next.visit.first);
    if (mode == StreamMode::forward) {
      return behind == PhaseKind::forward && (over_the_end || span.visit.first != next.visit.first);
    }
    // What runs again is part of backward.
    const bool in_backward = ahead == PhaseKind::backward || ahead == PhaseKind::recompute;
    return behind != PhaseKind::forward && (over_the_end || !in_backward);
  }

  // The begin of the visit `prefetch` ahead, going back over the step's begin.
  [[nodiscard]] PeriodPosition start_of(const Span& span) const {
    const auto count = static_cast<PeriodPosition>(visits_.size());
    const PeriodPosition row =
        static_cast<PeriodPosition>(number_of_.at(span.visit)) - *decisions_.prefetch;
    const PeriodPosition rounds = row >= 0 ? row / count : -((count - 1 - row) / count);
    const PeriodPosition begin = visits_[static_cast<std::size_t>(row - rounds * count)].first;
    return std::min(begin + rounds * period_, span.first);
  }

  void add_stays(StorageId storage, const std::vector<Span>& spans) {
    const std::size_t n = spans.size();
    std::vector<bool> leaves_behind(n);
    const StreamMode mode = mode_of(storage);
    const PeriodPosition update = update_of(storage);
    std::size_t begin = n;  // first span of some stay
    for (std::size_t i = n; i-- > 0;) {
      const bool is_updated = update != kNoPosition && i + 1 == n;
      leaves_behind[i] =
          is_updated || is_away_behind(spans[i], spans[(i + 1) % n], i + 1 == n, mode);
      if (leaves_behind[i]) begin = (i + 1) % n;
    }
    if (begin == n) {
      const char* const phase = mode == StreamMode::forward ? "forward" : "backward";
      out_.notes.push_back({{}, std::string("stays: no ") + phase + " uses it", storage});
      return;
    }
    const TenantId tenant(out_.tenants.size());
    const Bytes bytes = trace_.storages.bytes[storage.index()];
    out_.tenants.push_back({&kind_, storage, 0, bytes, 0, true, {}});
    out_.tenants.back().is_updated_at_home = update != kNoPosition;
    const std::size_t first_row = out_.stays.size();
    std::optional<PlacedStay> open;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t i = (begin + k) % n;
      const PeriodPosition later = i < begin ? period_ : 0;
      const Span& span = spans[i];
      if (!open) {
        open.emplace();
        open->tenant = tenant;
        open->await = span.first + later;
        if (decisions_.prefetch) {
          open->wanted_load = start_of(span) + later;
          // Not ahead of the update in the period before.
          if (update != kNoPosition) {
            open->wanted_load = std::max(open->wanted_load, update - period_ + later);
          }
        }
      }
      if (span.store != kNoPosition) open->store = span.store + later;
      open->earliest_evict = span.last + later;
      if (!leaves_behind[i]) continue;
      if (open->await >= period_) {
        for (PeriodPosition* p :
             {&open->wanted_load, &open->await, &open->store, &open->earliest_evict}) {
          if (*p != kNoPosition) *p -= period_;
        }
      }
      open->latest_evict = open->has_store() ? kNoLimit : open->earliest_evict;
      if (i + 1 == n) open->update = update;
      out_.stays.push_back(std::move(*open));
      open.reset();
    }
    // They are in order from `begin` on around the period.
    const auto first = out_.stays.begin() + static_cast<std::ptrdiff_t>(first_row);
    const auto is_ahead = [](const PlacedStay& a, const PlacedStay& b) {
      return a.await < b.await;
    };
    std::rotate(first, std::is_sorted_until(first, out_.stays.end(), is_ahead), out_.stays.end());
  }

  // Made in the first span, away behind each.
  void add_stays_anew(StorageId storage, const std::vector<Span>& spans) {
    const TenantId tenant(out_.tenants.size());
    const Bytes bytes = trace_.storages.bytes[storage.index()];
    const StorageId previous = index_.model_state_uses().previous_of(storage);
    out_.tenants.push_back({&kind_, storage, 0, bytes, 0, true, {}, previous});
    for (const Span& span : spans) {
      PlacedStay stay;
      stay.tenant = tenant;
      stay.is_made = &span == &spans.front();
      // What is made is its parameter's by the end of the visit.
      stay.store = stay.is_made ? span.last : span.store;
      if (!stay.is_made) stay.await = span.first;
      stay.earliest_evict = span.last;
      stay.latest_evict = stay.has_store() ? kNoLimit : stay.earliest_evict;
      out_.stays.push_back(std::move(stay));
    }
    const PeriodPosition update = update_of(storage);
    if (update == kNoPosition) return;
    // Behind what the step last does with the parameter, all of which the store has seen then.
    const auto is_stored = [](const PlacedStay& stay) { return stay.has_store(); };
    const auto last = std::find_if(out_.stays.rbegin(), out_.stays.rend(), is_stored);
    STOWAGE_ASSERT(last != out_.stays.rend() && last->tenant == tenant);
    last->update = update;
    if (last == out_.stays.rbegin()) {
      last->store = last->earliest_evict = std::max(last->store, update);
    }
  }

  const StepIndex& index_;
  const Trace& trace_;
  const TenantKind& kind_;
  const ParameterDecisions& decisions_;
  const HostUpdatePlaces& updates_;
  const PeriodPosition period_;
  std::vector<std::pair<StorageId, std::vector<Span>>> spans_;
  std::map<Visit, PeriodPosition> begin_of_;
  std::vector<std::pair<PeriodPosition, Visit>> visits_;  // in order of begin
  std::map<Visit, std::size_t> number_of_;
  Movement out_;
};

// State that the host has for good: a home and no stay.
void add_homes(const StepIndex& index, const std::vector<bool>& updated_on_host,
               Movement& movement) {
  const Storages& storages = index.trace().storages;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const StorageId parameter = storages.parameter[s];
    if (storages.storage_class[s] != StorageClass::optimizer_state || !parameter.valid()) continue;
    if (!updated_on_host[parameter.index()]) continue;
    movement.tenants.push_back({&kOptimizerState, StorageId(s), 0, storages.bytes[s], 0, true, {}});
    movement.tenants.back().is_updated_at_home = true;
  }
}

}  // namespace

HostUpdatePlaces::HostUpdatePlaces(const StepIndex& index,
                                   const std::vector<bool>& updated_on_host) {
  if (updated_on_host.empty()) return;
  const Storages& storages = index.trace().storages;
  const ModelStateUses& uses = index.model_state_uses();
  place_.assign(storages.size(), kNoPosition);
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const StorageId parameter = storages.parameter[s];
    if (storages.storage_class[s] != StorageClass::gradient || !parameter.valid()) continue;
    if (!storages.alloc_event[s].valid() || !updated_on_host[parameter.index()]) continue;
    PeriodPosition place = kNoPosition;
    for (const ModelStateTouch& touch : uses.touches_of(StorageId(s))) {
      place = std::max(place, position_of(touch.last));
    }
    for (const ModelStateTouch& touch : uses.touches_of(parameter)) {
      place = std::max(place, position_of(touch.last));
    }
    place_[s] = place_[parameter.index()] = place;
  }
}

Movement parameter_stays(const StepIndex& index, const ParameterDecisions& decisions,
                         const HostUpdatePlaces& updates) {
  return Maker(index, kParameter, decisions, updates).run();
}

Movement optimizer_state_stays(const StepIndex& index, const OptimizerDecisions& decisions) {
  ParameterDecisions streaming;  // as one shard
  streaming.stream = StreamMode::always;
  for (const bool streams : decisions.state_streams) {
    streaming.shard_of.push_back(streams ? 0 : -1);
  }
  const HostUpdatePlaces none;
  Movement movement = Maker(index, kOptimizerState, streaming, none).run();
  if (!decisions.updated_on_host.empty()) add_homes(index, decisions.updated_on_host, movement);
  return movement;
}

Movement gradient_stays(const StepIndex& index, const GradientDecisions& decisions,
                        const HostUpdatePlaces& updates) {
  ParameterDecisions leaving;  // as one shard
  leaving.stream = StreamMode::always;
  const std::size_t rows = index.trace().storages.size();
  for (std::size_t s = 0; s < rows; ++s) {
    const bool leaves = (!decisions.at_home.empty() && decisions.at_home[s]) ||
                        (updates.of(StorageId(s)) != kNoPosition &&
                         index.trace().storages.storage_class[s] == StorageClass::gradient);
    leaving.shard_of.push_back(leaves ? 0 : -1);
  }
  return Maker(index, kGradient, leaving, updates).run();
}

}  // namespace stowage::simulator
