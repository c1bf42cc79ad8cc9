#include "simulator/lowering/automatic_starts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/lowering/automatic_releases.h"
#include "simulator/lowering/memory_profile.h"
#include "simulator/schedule/saved_tensor_tenant.h"

namespace stowage::simulator {
namespace {

constexpr PeriodPosition kStepBegin = 1;  // behind step_begin

class StartPass {
 public:
  StartPass(const StepIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
            const std::vector<Bytes>& delta, Movement& movement)
      : index_(index),
        trace_(index.trace()),
        fixed_(fixed),
        budget_(budget),
        delta_(delta),
        period_(period_of(index.event_count())),
        step_end_(position_of({EventId(index.event_count() - 1), Side::before})),
        m_(movement) {}

  void run() {
    m_.start_reload.resize(m_.reloads.size());
    collect();
    choose_wrapping();
    if (budget_) {
      starts_within_budget();
    } else {
      keep_order();
    }
    for (const Copy& copy : copies_) {
      if (copy.is_load) {
        m_.stays[copy.row].start = copy.wraps ? copy.start - period_ : copy.start;
      } else {
        m_.start_reload[copy.row] = place_at(copy.start, period_);
      }
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
    std::size_t row = 0;       // of reloads or stays
    bool is_load = false;
    bool is_automatic = true;
    bool wraps = false;
  };

  [[nodiscard]] std::size_t anchor_at(PeriodPosition position) const {
    return index_.anchor_row(place_at(position, period_).event);
  }
  [[nodiscard]] Nanoseconds time_at(PeriodPosition position) const {
    return index_.anchor_times()[anchor_at(position)];
  }

  [[nodiscard]] Nanoseconds expected(Bytes bytes) {
    const auto [known, is_new] = expected_.try_emplace(bytes);
    if (is_new) known->second = expected_ns(trace_.calibration, trace_.calibration.h2d, bytes);
    return known->second;
  }

  void collect() {
    for (std::size_t r = 0; r < m_.reloads.size(); ++r) {
      const Reload& reload = m_.reloads[r];
      Copy copy;
      copy.await = position_of(await_place(trace_, reload.unpacks));
      copy.earliest = position_of(m_.release[reload.offload]);
      copy.bytes = m_.offloads[reload.offload].bytes;
      copy.row = r;
      copy.is_automatic = !fixed_.start_reload[r] && reload.copy_in == CopyMode::lane;
      copy.duration = expected(copy.bytes);
      if (!copy.is_automatic) {
        const Place fixed = fixed_.start_reload[r].value_or(await_place(trace_, reload.unpacks));
        copy.start = std::max(position_of(fixed), copy.earliest);
      }
      copies_.push_back(copy);
    }
    for (std::size_t i = 0; i < m_.stays.size(); ++i) {
      const ParameterStay& stay = m_.stays[i];
      Copy copy;
      copy.await = stay.await;
      copy.earliest = end_of_stay_before(i);
      copy.bytes = stay.bytes;
      copy.row = i;
      copy.is_load = true;
      copy.duration = expected(copy.bytes);
      copy.is_automatic = stay.start == kNoPosition;
      if (!copy.is_automatic) {
        copy.wraps = stay.start < 0;
        copy.start = copy.wraps ? stay.start + period_ : stay.start;
      }
      copies_.push_back(copy);
    }
    std::stable_sort(copies_.begin(), copies_.end(), [](const Copy& a, const Copy& b) {
      return std::tie(a.await, a.is_load) < std::tie(b.await, b.is_load);
    });
  }

  // ParameterStays of one storage stand together, in order.
  [[nodiscard]] PeriodPosition end_of_stay_before(std::size_t i) const {
    const StorageId storage = m_.stays[i].storage;
    if (i > 0 && m_.stays[i - 1].storage == storage) return m_.stays[i - 1].evict;
    while (i + 1 < m_.stays.size() && m_.stays[i + 1].storage == storage) ++i;
    return m_.stays[i].evict - period_;
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
          copy.is_load && !copy.wraps && copy.earliest < 0 && copy.earliest + period_ <= step_end_;
      if (may_wrap && start < 0) late.push_back(&copy);
    }
    return late;
  }

  [[nodiscard]] PeriodPosition earliest(const Copy& copy) const {
    if (copy.wraps) return copy.earliest + period_;
    return copy.is_load ? std::max(copy.earliest, kStepBegin) : copy.earliest;
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

  void starts_within_budget() {
    MemoryProfile profile(most_behind_anchors());
    for (const Copy& copy : copies_) {  // loads that are fixed are in it already
      if (!copy.is_automatic && !copy.is_load) take(profile, copy);
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
  const FixedPoints& fixed_;
  const std::optional<Bytes> budget_;
  const std::vector<Bytes>& delta_;
  const PeriodPosition period_;
  const PeriodPosition step_end_;
  Movement& m_;
  std::vector<Copy> copies_;
  std::map<Bytes, Nanoseconds> expected_;  // layers have the same sizes
};

}  // namespace

void place_starts(const StepIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
                  const std::vector<Bytes>& delta, Movement& movement) {
  StartPass(index, fixed, budget, delta, movement).run();
}

}  // namespace stowage::simulator
