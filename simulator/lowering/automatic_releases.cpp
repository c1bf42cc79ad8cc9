#include "simulator/lowering/automatic_releases.h"

#include <algorithm>
#include <utility>

#include "simulator/machine/link_model.h"
#include "simulator/schedule/saved_tensor_tenant.h"
#include "simulator/step/lifetimes.h"

namespace stowage::simulator {
namespace {

// Bytes that go when copies out are done: a storage with its last offload, or an updated parameter.
struct Leaver {
  Bytes bytes = 0;
  StorageId storage;                  // of offloads
  std::vector<std::size_t> offloads;  // none: a stay
  std::size_t stay = 0;
  PeriodPosition floor = 0;  // of a stay: it cannot leave before
  EventId ready;             // of offloads: the last one's first pack
  std::size_t end = 0;       // first event at which its bytes are gone
};

class ReleasePass {
 public:
  ReleasePass(const StepIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
              Movement& movement)
      : index_(index),
        trace_(index.trace()),
        time_(index.resident_time()),
        fixed_(fixed),
        budget_(budget),
        period_(period_of(index.event_count())),
        m_(movement) {}

  std::vector<Bytes> run() && {
    m_.release.resize(m_.offloads.size());
    leave_when_copied();
    if (!budget_) return {};
    collect_deltas();
    release_for_budget();
    return std::move(delta_);
  }

 private:
  // What a stay that waits for its store was kept for: its row, and where it could leave else.
  struct KeptForStore {
    std::size_t stay;
    PeriodPosition floor;
  };

  [[nodiscard]] std::size_t end_of_step() const { return index_.event_count(); }

  // The D2H queue in order of starts: offloads, and stores of updated parameters.
  void leave_when_copied() {
    const LatestReleases latest = latest_releases(index_, m_.offloads, m_.reloads);
    std::vector<std::size_t> stores;
    for (std::size_t i = 0; i < m_.stays.size(); ++i) {
      if (m_.stays[i].store != kNoPosition) stores.push_back(i);
    }
    std::sort(stores.begin(), stores.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(m_.stays[a].store % period_, a) < std::pair(m_.stays[b].store % period_, b);
    });
    auto store = stores.begin();
    for (std::size_t o = 0; o < m_.offloads.size(); ++o) {
      const Place start = store_place(trace_, m_.offloads[o].saved);
      for (; store != stores.end() && m_.stays[*store].store % period_ < position_of(start);) {
        evict_when_stored(*store++);
      }
      release_when_copied(o, start.event, latest.any[o]);
    }
    for (; store != stores.end(); ++store) evict_when_stored(*store);
  }

  void release_when_copied(std::size_t o, EventId pack, Place latest) {
    const Offload& offload = m_.offloads[o];
    Nanoseconds done = time_[pack.index()];
    if (offload.copy_out == CopyMode::lane) done = copied_at(done, offload.bytes);
    Place place = latest;
    if (const EventId event = first_at(pack, done); event.valid()) {
      place = std::min(place, Place{index_.next_anchor(event), Side::after});
    }
    m_.release[o] = fixed_.release[o].value_or(place);
  }

  // Not before its last use, not behind the start of its next stay, not over the step's end.
  void evict_when_stored(std::size_t i) {
    ParameterStay& stay = m_.stays[i];
    const PeriodPosition inside = stay.store % period_;
    const EventId event = place_at(inside, period_).event;
    const EventId done = first_at(event, copied_at(time_[event.index()], stay.bytes));
    const EventId end(end_of_step() - 1);
    const EventId anchor = done.valid() ? index_.next_anchor(done) : end;
    const PeriodPosition place = position_of({anchor, anchor == end ? Side::before : Side::after});
    const PeriodPosition wanted = std::min(place + stay.store - inside, begin_of_next_stay(i));
    if (wanted <= stay.evict) return;
    kept_for_store_.push_back({i, stay.evict});
    stay.evict = wanted;
  }

  [[nodiscard]] PeriodPosition begin_of_next_stay(std::size_t i) const {
    const StorageId storage = m_.stays[i].storage;
    const bool is_last = i + 1 == m_.stays.size() || m_.stays[i + 1].storage != storage;
    std::size_t next = i + 1;
    for (next = is_last ? i : next; is_last && next > 0; --next) {
      if (m_.stays[next - 1].storage != storage) break;
    }
    const ParameterStay& stay = m_.stays[next];
    return (stay.start != kNoPosition ? stay.start : stay.await) + (is_last ? period_ : 0);
  }

  // When the D2H lane has done a copy that is ready at `ready`.
  Nanoseconds copied_at(Nanoseconds ready, Bytes bytes) {
    lane_free_ = std::max(lane_free_, ready) +
                 expected_ns(trace_.calibration, trace_.calibration.d2h, bytes);
    return lane_free_;
  }

  // First event from `event` on that is not before `time`; none in the step.
  [[nodiscard]] EventId first_at(EventId event, Nanoseconds time) const {
    const auto at = std::lower_bound(time_.begin() + event.value, time_.end(), time);
    return at == time_.end() ? EventId() : EventId(static_cast<std::size_t>(at - time_.begin()));
  }

  // First event at which the bytes of `storage` are gone when its last release is at `release`. At
  // an unpack the bytes still count for a reload on demand, which comes ahead of an `after`
  // release.
  [[nodiscard]] std::size_t end_of(StorageId storage, Place release) const {
    const Hold hold = hold_of(trace_, storage);
    switch (leaving(hold, release.event)) {
      case Leaving::never:
        return end_of_step();
      case Leaving::behind_hold:
        return hold.event.index() + 1;
      case Leaving::at_eviction:
        break;
    }
    const bool at_unpack = trace_.events.kind[release.event.index()] == EventKind::unpack;
    return release.event.index() + (at_unpack && release.side == Side::after ? 1 : 0);
  }

  // First event at which the bytes of a stay are gone, in the period that it ends in.
  [[nodiscard]] std::size_t end_of(const ParameterStay& stay) const {
    const Place place = place_at(stay.evict, period_);
    const bool at_unpack = trace_.events.kind[place.event.index()] == EventKind::unpack;
    return place.event.index() + (at_unpack && place.side == Side::after ? 1 : 0);
  }

  [[nodiscard]] std::size_t end_of(const Leaver& unit) const {
    if (unit.offloads.empty()) return end_of(m_.stays[unit.stay]);
    Place last;
    for (const std::size_t o : unit.offloads) last = std::max(last, m_.release[o]);
    return end_of(unit.storage, last);
  }

  // First event at which a reload buffer is gone.
  [[nodiscard]] std::size_t end_of(const Reload& reload) const {
    const Hold hold = hold_of(trace_, reload.unpacks);
    return hold.outlives ? end_of_step() : hold.event.index() + 1;
  }

  [[nodiscard]] Bytes bytes_of(const Reload& reload) const {
    return m_.offloads[reload.offload].bytes;
  }

  void collect_deltas() {
    delta_ = index_.requested_delta();
    delta_.push_back(0);
    delta_.front() += index_.bytes_at_begin();
    collect_offloads();
    for (const Reload& reload : m_.reloads) {
      delta_[await_place(trace_, reload.unpacks).event.index()] += bytes_of(reload);
      delta_[end_of(reload)] -= bytes_of(reload);
    }
    for (std::size_t i = 0; i < m_.stays.size(); ++i) {
      const ParameterStay& stay = m_.stays[i];
      if (i == 0 || m_.stays[i - 1].storage != stay.storage) delta_.front() -= stay.bytes;
      const PeriodPosition begin = stay.start != kNoPosition ? stay.start : stay.await;
      delta_[place_at(begin, period_).event.index()] += stay.bytes;
      delta_[end_of(stay)] -= stay.bytes;
      if (begin < 0 || stay.evict >= period_) delta_.front() += stay.bytes;
    }
    for (const KeptForStore& kept : kept_for_store_) {
      const ParameterStay& stay = m_.stays[kept.stay];
      Leaver unit;
      unit.bytes = stay.bytes;
      unit.stay = kept.stay;
      unit.floor = kept.floor;
      unit.ready = place_at(kept.floor, period_).event;
      unit.end = end_of(stay);
      units_.push_back(std::move(unit));
    }
  }

  void collect_offloads() {
    std::vector<std::int32_t> unit_of(trace_.storages.size(), -1);
    for (std::size_t o = 0; o < m_.offloads.size(); ++o) {
      const StorageId storage = m_.offloads[o].storage;
      if (!trace_.storages.alloc_event[storage.index()].valid()) continue;
      auto& row = unit_of[storage.index()];
      if (row < 0) {
        row = static_cast<std::int32_t>(units_.size());
        Leaver unit;
        unit.bytes = trace_.storages.bytes[storage.index()];
        unit.storage = storage;
        units_.push_back(std::move(unit));
      }
      Leaver& unit = units_[static_cast<std::size_t>(row)];
      unit.offloads.push_back(o);
      unit.ready = std::max(unit.ready, store_place(trace_, m_.offloads[o].saved).event);
    }
    for (Leaver& unit : units_) {
      const EventId free = trace_.storages.free_event[unit.storage.index()];
      if (free.valid()) delta_[free.index()] += unit.bytes;
      unit.end = end_of(unit);
      delta_[unit.end] -= unit.bytes;
    }
  }

  void release_for_budget() {
    std::stable_sort(units_.begin(), units_.end(),
                     [](const Leaver& a, const Leaver& b) { return a.ready < b.ready; });
    std::vector<std::size_t> pending;  // rows of units_, oldest first
    std::size_t next = 0;
    Bytes now = 0;
    for (std::size_t e = 0; e < end_of_step(); ++e) {
      now += delta_[e];
      while (next < units_.size() && units_[next].ready.index() < e) pending.push_back(next++);
      if (delta_[e] <= 0 || now <= *budget_ || pending.empty()) continue;
      const Place place{index_.previous_anchor(EventId(e - 1)), Side::after};
      std::erase_if(pending, [&](std::size_t row) {
        Leaver& unit = units_[row];
        if (unit.end <= e) return true;  // gone already
        if (now <= *budget_ || !can_leave(unit, place, e)) return false;
        leave(unit, place);
        delta_[unit.end] += unit.bytes;
        unit.end = end_of(unit);
        delta_[unit.end] -= unit.bytes;
        now -= unit.bytes;
        return true;
      });
    }
  }

  // Whether releasing at `place` would make the unit's bytes go before event e.
  [[nodiscard]] bool can_leave(const Leaver& unit, Place place, std::size_t e) const {
    if (unit.offloads.empty()) {
      const PeriodPosition position = position_of(place) + rounds_of(unit);
      return position >= unit.floor && position < m_.stays[unit.stay].evict;
    }
    Place last;
    for (const std::size_t o : unit.offloads) {
      last = std::max(last, fixed_.release[o] ? m_.release[o] : std::min(m_.release[o], place));
    }
    return end_of(unit.storage, last) <= e;
  }

  void leave(const Leaver& unit, Place place) {
    for (const std::size_t o : unit.offloads) {
      if (!fixed_.release[o]) m_.release[o] = std::min(m_.release[o], place);
    }
    if (unit.offloads.empty()) m_.stays[unit.stay].evict = position_of(place) + rounds_of(unit);
  }

  // The begin of the period that a stay ends in.
  [[nodiscard]] PeriodPosition rounds_of(const Leaver& unit) const {
    return unit.floor - unit.floor % period_;
  }

  const StepIndex& index_;
  const Trace& trace_;
  const std::vector<Nanoseconds>& time_;
  const FixedPoints& fixed_;
  const std::optional<Bytes> budget_;
  const PeriodPosition period_;
  Movement& m_;
  Nanoseconds lane_free_ = 0;
  std::vector<KeptForStore> kept_for_store_;
  std::vector<Leaver> units_;
  std::vector<Bytes> delta_;
};

}  // namespace

Nanoseconds expected_ns(const Calibration& link, const LinkCurve& curve, Bytes bytes) {
  const Ppm speed = std::clamp<Ppm>(link.copy_interference, kPpm / 1000, kPpm);
  const Nanoseconds alone = transfer_ns(curve, bytes);
  return alone + (alone / speed) * (kPpm - speed) + (alone % speed) * (kPpm - speed) / speed;
}

std::vector<Bytes> place_releases(const StepIndex& index, const FixedPoints& fixed,
                                  std::optional<Bytes> budget, Movement& movement) {
  return ReleasePass(index, fixed, budget, movement).run();
}

}  // namespace stowage::simulator
