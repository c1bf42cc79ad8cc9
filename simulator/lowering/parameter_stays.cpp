#include "simulator/lowering/parameter_stays.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "simulator/lowering/lowering.h"
#include "simulator/step/parameter_uses.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// What does a visit: a shard, or another layer that uses a tied weight.
using Group = std::int64_t;
using Visit = std::pair<PhaseId, Group>;

struct Span {
  Visit visit;
  PeriodPosition first = 0;
  PeriodPosition last = 0;
  PeriodPosition store = kNoPosition;
};

class Maker {
 public:
  Maker(const StepIndex& index, const ParameterDecisions& decisions)
      : index_(index),
        trace_(index.trace()),
        decisions_(decisions),
        period_(period_of(index.event_count())) {}

  ParameterStays run() && {
    if (decisions_.stream == ParameterPlan::Stream::off) return {};
    for (std::size_t s = 0; s < decisions_.shard_of.size(); ++s) {
      if (decisions_.shard_of[s] < 0) continue;
      const std::string& reason = index_.parameter_uses().reason_to_stay(StorageId(s));
      if (reason.empty()) {
        add_spans(StorageId(s));
      } else {
        out_.notes.push_back({{}, reason, StorageId(s)});
      }
    }
    order_visits();
    for (const auto& [storage, spans] : spans_) add_stays(storage, spans);
    return std::move(out_);
  }

 private:
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

  [[nodiscard]] Group group_of(StorageId storage, const ParameterTouch& touch) const {
    const Group own = decisions_.shard_of[storage.index()];
    const LayerId home = trace_.storages.layer[storage.index()];
    if (kind_of(touch.phase) == PhaseKind::optimizer || related(home, touch.layer)) return own;
    return -1 - Group{touch.layer.value};
  }

  void add_spans(StorageId storage) {
    std::vector<Span> spans;
    for (const ParameterTouch& touch : index_.parameter_uses().touches_of(storage)) {
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

  // Whether the parameter leaves between a span and the next one.
  [[nodiscard]] bool leaves(const Span& span, const Span& next, bool over_the_end) const {
    if (decisions_.stream == ParameterPlan::Stream::always) return true;
    const bool same_phase = span.visit.first == next.visit.first && !over_the_end;
    return kind_of(span.visit.first) == PhaseKind::forward && !same_phase;
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
    std::size_t begin = n;  // first span of some stay
    for (std::size_t i = n; i-- > 0;) {
      leaves_behind[i] = leaves(spans[i], spans[(i + 1) % n], i + 1 == n);
      if (leaves_behind[i]) begin = (i + 1) % n;
    }
    if (begin == n) {  // no forward uses it
      out_.notes.push_back({{}, "stays: no forward uses it", storage});
      return;
    }
    const Bytes bytes = trace_.storages.bytes[storage.index()];
    const std::size_t first_row = out_.stays.size();
    std::optional<ParameterStay> open;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t i = (begin + k) % n;
      const PeriodPosition later = i < begin ? period_ : 0;
      const Span& span = spans[i];
      if (!open) {
        open = ParameterStay{storage, bytes, kNoPosition, span.first + later, kNoPosition, 0};
        if (decisions_.prefetch) open->start = start_of(span) + later;
      }
      if (span.store != kNoPosition) open->store = span.store + later;
      open->evict = span.last + later;
      if (!leaves_behind[i]) continue;
      if (open->await >= period_) {
        for (PeriodPosition* p : {&open->start, &open->await, &open->store, &open->evict}) {
          if (*p != kNoPosition) *p -= period_;
        }
      }
      out_.stays.push_back(*open);
      open.reset();
    }
    std::sort(out_.stays.begin() + static_cast<std::ptrdiff_t>(first_row), out_.stays.end(),
              [](const ParameterStay& a, const ParameterStay& b) { return a.await < b.await; });
  }

  const StepIndex& index_;
  const Trace& trace_;
  const ParameterDecisions& decisions_;
  const PeriodPosition period_;
  std::vector<std::pair<StorageId, std::vector<Span>>> spans_;
  std::map<Visit, PeriodPosition> begin_of_;
  std::vector<std::pair<PeriodPosition, Visit>> visits_;  // in order of begin
  std::map<Visit, std::size_t> number_of_;
  ParameterStays out_;
};

// `next` follows `stay` without a gap: it goes on in it. `later`: the periods between the two.
void append(ParameterStay& stay, const ParameterStay& next, PeriodPosition later) {
  stay.evict = std::max(stay.evict, next.evict + later);
  if (next.store != kNoPosition) stay.store = next.store + later;
}

// The stays of one storage, merged in place; empty when it never leaves.
void merge(std::vector<ParameterStay>& stays, PeriodPosition period) {
  for (std::size_t i = 0; i < stays.size() && stays.size() > 1;) {
    const bool last = i + 1 == stays.size();
    const std::size_t next = last ? 0 : i + 1;
    const PeriodPosition later = last ? period : 0;
    if (stays[next].start == kNoPosition || stays[next].start + later > stays[i].evict) {
      ++i;
      continue;
    }
    append(stays[i], stays[next], later);
    stays.erase(stays.begin() + static_cast<std::ptrdiff_t>(next));
    i = 0;  // a stay that got longer may touch others
  }
  if (stays.size() == 1 && stays[0].start != kNoPosition &&
      stays[0].start + period <= stays[0].evict) {
    stays.clear();
  }
}

}  // namespace

Place place_at(PeriodPosition position, PeriodPosition period) {
  const PeriodPosition inside = ((position % period) + period) % period;
  return {EventId(static_cast<std::size_t>(inside / 2)),
          inside % 2 == 0 ? Side::before : Side::after};
}

ParameterStays parameter_stays(const StepIndex& index, const ParameterDecisions& decisions) {
  return Maker(index, decisions).run();
}

bool merge_touching(const StepIndex& index, ParameterStays& stays) {
  const PeriodPosition period = period_of(index.event_count());
  const std::size_t before = stays.stays.size();
  std::vector<ParameterStay> out;
  for (auto at = stays.stays.begin(); at != stays.stays.end();) {
    const StorageId storage = at->storage;
    const auto end = std::find_if(
        at, stays.stays.end(), [&](const ParameterStay& stay) { return stay.storage != storage; });
    std::vector<ParameterStay> own(at, end);
    merge(own, period);
    if (own.empty()) {
      stays.notes.push_back({{}, "stays: it would come back where it leaves", storage});
    }
    out.insert(out.end(), own.begin(), own.end());
    at = end;
  }
  stays.stays = std::move(out);
  return stays.stays.size() != before;
}

bool merge_where_placed(const StepIndex& index, const std::vector<ParameterStay>& placed,
                        ParameterStays& stays) {
  STOWAGE_ASSERT(placed.size() == stays.stays.size());
  const PeriodPosition period = period_of(index.event_count());
  bool touching = false;
  for (std::size_t first = 0; first < placed.size();) {
    std::size_t end = first;
    while (end < placed.size() && placed[end].storage == placed[first].storage) ++end;
    for (std::size_t i = first; i < end; ++i) {
      const bool last = i + 1 == end;
      const std::size_t next = last ? first : i + 1;
      const PeriodPosition later = last ? period : 0;
      if (placed[next].start + later > placed[i].evict) continue;
      stays.stays[next].start = stays.stays[i].evict - later;
      touching = true;
    }
    first = end;
  }
  return touching && merge_touching(index, stays);
}

}  // namespace stowage::simulator
