#include "simulator/lowering/automatic_loads.h"

#include <algorithm>
#include <limits>

#include "simulator/lowering/expected_times.h"
#include "simulator/lowering/memory_profile.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

constexpr PeriodPosition kStepBegin = 1;  // behind step_begin

class LoadPass {
 public:
  LoadPass(const StepIndex& index, std::optional<Bytes> budget, const std::vector<Bytes>& delta,
           Movement& movement)
      : index_(index),
        trace_(index.trace()),
        budget_(budget),
        delta_(delta),
        period_(period_of(index.event_count())),
        step_end_(position_of({EventId(index.event_count() - 1), Side::before})),
        tenants_(movement.tenants),
        stays_(movement.stays),
        expected_(trace_.calibration, trace_.calibration.h2d) {}

  void run() {
    collect();
    choose_wrapping();
    if (budget_) {
      loads_within_budget();
    } else {
      keep_order();
    }
    for (const Copy& copy : copies_) {
      stays_[copy.row].load = copy.wraps ? copy.start - period_ : copy.start;
    }
  }

 private:
  // One copy to the device. Positions are in [0, period); a copy that wraps is awaited in the next
  // period, at `await`.
  struct Copy {
    PeriodPosition await = 0;
    PeriodPosition earliest = 0;  // < 0: also in the period before, from there + period on
    PeriodPosition start = 0;
    Bytes bytes = 0;
    Nanoseconds duration = 0;  // expected
    std::size_t row = 0;       // of stays_
    bool is_counted = false;   // in `delta` from its start on
    bool is_automatic = true;
    bool wraps = false;
  };

  [[nodiscard]] std::size_t anchor_at(PeriodPosition position) const {
    return index_.anchor_row(place_at(position, period_).event);
  }
  [[nodiscard]] Nanoseconds time_at(PeriodPosition position) const {
    return index_.anchor_times()[anchor_at(position)];
  }

  void collect() {
    std::vector<PeriodPosition> last_evict(tenants_.size());  // of stays that serve no unpacks
    for (const PlacedStay& stay : stays_) {
      // It comes back behind its update on the host, if there is one.
      if (!stay.serves_unpacks()) {
        last_evict[stay.tenant.index()] = std::max(stay.evict, stay.update);
      }
    }
    copies_.reserve(stays_.size());
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      const PlacedStay& stay = stays_[i];
      if (stay.is_made) continue;
      const std::size_t tenant = stay.tenant.index();
      Copy copy;
      copy.row = i;
      copy.await = stay.await;
      copy.bytes = tenants_[tenant].bytes;
      copy.duration = expected_.of(copy.bytes);
      copy.earliest = last_evict[tenant];
      if (!stay.serves_unpacks()) {
        const bool is_first = !follows(stays_, i);
        copy.earliest = is_first ? copy.earliest - period_ : stays_[i - 1].evict;
      }
      copy.is_automatic = stay.wanted_load == kNoPosition;
      if (!copy.is_automatic) {
        copy.is_counted = stay.has_fixed_load();
        STOWAGE_ASSERT(!copy.is_counted || copy.earliest <= stay.wanted_load);
        copy.start = std::max(stay.wanted_load, copy.earliest);
        copy.wraps = copy.start < 0;
        if (copy.wraps) copy.start += period_;
      }
      copies_.push_back(copy);
    }
    std::stable_sort(copies_.begin(), copies_.end(),
                     [](const Copy& a, const Copy& b) { return a.await < b.await; });
  }

  // In the order of the H2D queue: what is needed in this period, then what wraps.
  [[nodiscard]] std::vector<Copy*> queue() {
    std::vector<Copy*> order;
    for (const bool wraps : {false, true}) {
      for (Copy& copy : copies_) {
        if (copy.wraps == wraps) order.push_back(&copy);
      }
    }
    return order;
  }

  // Loads that could not be done in time come ahead of the step's end, where they have time left.
  void choose_wrapping() {
    constexpr int kMostRounds = 4;  // what is added makes others late
    for (int round = 0; round < kMostRounds; ++round) {
      bool changed = false;
      for (Copy* copy : latest_starts()) {
        copy->wraps = changed = true;
      }
      if (!changed) return;
    }
    latest_starts();
  }

  // Backward scan. Returns the loads that would have to start ahead of the step and may.
  std::vector<Copy*> latest_starts() {
    std::vector<Copy*> late;
    const std::vector<Copy*> order = queue();
    Nanoseconds next_start = std::numeric_limits<Nanoseconds>::max();
    for (std::size_t i = order.size(); i-- > 0;) {
      Copy& copy = *order[i];
      if (!copy.is_automatic) {
        next_start = std::min(next_start, time_at(copy.start));
        continue;
      }
      const PeriodPosition need = copy.wraps ? step_end_ : copy.await;
      const Nanoseconds start = std::min(time_at(need), next_start) - copy.duration;
      copy.start = std::max(at_or_before(start, need), earliest(copy));
      next_start = std::max(start, time_at(copy.start));
      const bool may_wrap =
          !copy.wraps && copy.earliest < 0 && copy.earliest + period_ <= step_end_;
      if (may_wrap && start < 0) late.push_back(&copy);
    }
    return late;
  }

  [[nodiscard]] PeriodPosition earliest(const Copy& copy) const {
    return copy.wraps ? copy.earliest + period_ : std::max(copy.earliest, kStepBegin);
  }

  // The last anchor whose time is at most `start`, ahead of `need` if it is as late as that.
  [[nodiscard]] PeriodPosition at_or_before(Nanoseconds start, PeriodPosition need) const {
    const auto& times = index_.anchor_times();
    const auto later = std::upper_bound(times.begin(), times.end(), start);
    const auto row = static_cast<std::size_t>(later - times.begin());
    return before(index_.anchors()[row > 0 ? row - 1 : 0], need);
  }
  [[nodiscard]] PeriodPosition before(EventId anchor, PeriodPosition need) const {
    return anchor < place_at(need, period_).event ? position_of({anchor, Side::after}) : need;
  }

  void keep_order() {
    PeriodPosition previous = 0;
    for (Copy* copy : queue()) {
      if (!copy->is_automatic) continue;
      copy->start = previous = std::max(copy->start, previous);
    }
  }

  void loads_within_budget() {
    MemoryProfile profile(most_behind_anchors());
    for (const Copy& copy : copies_) {
      if (!copy.is_automatic && !copy.is_counted) take(profile, copy);
    }
    if (keep_wrapping(profile)) latest_starts();
    PeriodPosition previous = 0;
    for (Copy* copy : queue()) {
      if (!copy->is_automatic) continue;
      const PeriodPosition need = copy->wraps ? step_end_ : copy->await;
      PeriodPosition start = std::max(copy->start, previous);
      const std::size_t full =
          profile.last_above(anchor_at(start), anchor_at(need), *budget_ - copy->bytes);
      if (full < anchor_at(need)) start = before(index_.anchors()[full + 1], need);
      // No time passes at an event, but bytes are given up there.
      if (anchor_at(start) == anchor_at(need)) start = need;
      copy->start = previous = start;
      take(profile, *copy);
    }
  }

  // The most bytes from each anchor to the next one: copies start and are awaited at anchors alone.
  [[nodiscard]] std::vector<Bytes> most_behind_anchors() const {
    std::vector<Bytes> most(index_.anchors().size(), std::numeric_limits<Bytes>::min());
    Bytes now = 0;
    for (std::size_t e = 0; e < index_.event_count(); ++e) {
      now += delta_[e];
      Bytes& here = most[index_.anchor_row(EventId(e))];
      here = std::max(here, now);
    }
    return most;
  }

  // Up to where the curve has it already.
  void take(MemoryProfile& profile, const Copy& copy) const {
    profile.add(anchor_at(copy.start), anchor_at(copy.wraps ? step_end_ : copy.await), copy.bytes);
  }

  // What wraps is there at the step's end and from its begin on, if the budget allows. True when
  // some no longer wrap.
  bool keep_wrapping(MemoryProfile& profile) {
    bool changed = false;
    const std::size_t end = anchor_at(step_end_);
    for (Copy& copy : copies_) {
      if (!copy.wraps || !copy.is_automatic) continue;
      const std::size_t need = anchor_at(copy.await);
      const Bytes most = std::max(profile.max(0, need), profile.max(end, end + 1));
      if (most + copy.bytes > *budget_) {
        copy.wraps = false;
        changed = true;
        continue;
      }
      profile.add(0, need, copy.bytes);
      profile.add(end, end + 1, copy.bytes);
    }
    return changed;
  }

  const StepIndex& index_;
  const Trace& trace_;
  const std::optional<Bytes> budget_;
  const std::vector<Bytes>& delta_;
  const PeriodPosition period_;
  const PeriodPosition step_end_;
  const std::vector<Tenant>& tenants_;
  std::vector<PlacedStay>& stays_;
  std::vector<Copy> copies_;
  ExpectedTimes expected_;
};

}  // namespace

void place_loads(const StepIndex& index, std::optional<Bytes> budget,
                 const std::vector<Bytes>& delta, Movement& movement) {
  LoadPass(index, budget, delta, movement).run();
}

}  // namespace stowage::simulator
