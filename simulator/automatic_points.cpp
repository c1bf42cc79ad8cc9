#include "simulator/automatic_points.h"

#include <algorithm>
#include <limits>

#include "simulator/link_model.h"
#include "simulator/memory_profile.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// A storage whose bytes go when its last offload is released: what the release pass moves.
struct Unit {
  StorageId storage;
  std::vector<std::size_t> offloads;
  EventId last_pack;    // first pack of its last offload: it cannot leave before
  std::size_t end = 0;  // first event at which its bytes are gone
};

// The time that a copy takes while compute is busy, which it mostly is.
Nanoseconds expected_ns(const Calibration& link, const LinkCurve& curve, Bytes bytes) {
  const Ppm speed = std::clamp<Ppm>(link.copy_interference, kPpm / 1000, kPpm);
  const Nanoseconds alone = transfer_ns(curve, bytes);
  return alone + (alone / speed) * (kPpm - speed) + (alone % speed) * (kPpm - speed) / speed;
}

class Placer {
 public:
  Placer(const TraceIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
         Movement& movement)
      : index_(index),
        trace_(index.trace()),
        time_(index.resident_time()),
        fixed_(fixed),
        budget_(budget),
        m_(movement) {}

  void run() {
    m_.release.resize(m_.offloads.size());
    m_.start_reload.resize(m_.reloads.size());
    release_when_copied();
    if (budget_) {
      collect_deltas();
      release_for_budget();
    }
    latest_starts();
    if (budget_) {
      starts_within_budget();
    } else {
      keep_order();
    }
  }

 private:
  [[nodiscard]] std::size_t end_of_step() const { return index_.event_count(); }

  void release_when_copied() {
    const LatestReleases latest = latest_releases(index_, m_.offloads, m_.reloads);
    Nanoseconds lane_free = 0;
    for (std::size_t o = 0; o < m_.offloads.size(); ++o) {
      const Offload& offload = m_.offloads[o];
      const EventId pack = start_of(trace_, offload).event;
      Nanoseconds done = time_[pack.index()];
      if (offload.copy_out == CopyMode::lane) {
        lane_free = std::max(lane_free, done) +
                    expected_ns(trace_.calibration, trace_.calibration.d2h, offload.bytes);
        done = lane_free;
      }
      if (fixed_.release[o]) {
        m_.release[o] = *fixed_.release[o];
        continue;
      }
      const auto at = std::lower_bound(time_.begin() + pack.value, time_.end(), done);
      Place place = latest.any[o];
      if (at != time_.end()) {
        const EventId event(static_cast<std::size_t>(at - time_.begin()));
        place = std::min(place, Place{index_.next_anchor(event), Side::after});
      }
      m_.release[o] = place;
    }
  }

  // First event at which the bytes of `storage` are gone when its last release is at `release`. At
  // an unpack the bytes still count for a reload on demand, which comes ahead of an `after`
  // release.
  [[nodiscard]] std::size_t end_of(StorageId storage, Place release) const {
    const EventId natural = trace_.storages.natural_free_event[storage.index()];
    if (!natural.valid()) return end_of_step();
    if (natural >= release.event) return natural.index() + 1;
    const bool at_unpack = trace_.events.kind[release.event.index()] == EventKind::unpack;
    return release.event.index() + (at_unpack && release.side == Side::after ? 1 : 0);
  }

  [[nodiscard]] std::size_t end_of(const Unit& unit) const {
    Place last;
    for (const std::size_t o : unit.offloads) last = std::max(last, m_.release[o]);
    return end_of(unit.storage, last);
  }

  // First event at which a reload buffer is gone.
  [[nodiscard]] std::size_t end_of(const Reload& reload) const {
    EventId last = trace_.unpacks.event[reload.unpacks.back().index()];
    for (const UnpackId u : reload.unpacks) {
      const EventId released = trace_.unpacks.released_event[u.index()];
      if (!released.valid()) return end_of_step();
      last = std::max(last, released);
    }
    return last.index() + 1;
  }

  [[nodiscard]] Bytes bytes_of(const Reload& reload) const {
    return m_.offloads[reload.offload.index()].bytes;
  }

  // Requested bytes as changes by event, moved storages leaving at their releases, reload buffers
  // from their first unpack on.
  void collect_deltas() {
    delta_ = index_.requested_delta();
    delta_.push_back(0);
    std::vector<std::int32_t> unit_of(trace_.storages.size(), -1);
    for (std::size_t o = 0; o < m_.offloads.size(); ++o) {
      const StorageId storage = m_.offloads[o].storage;
      if (!trace_.storages.alloc_event[storage.index()].valid()) continue;
      auto& row = unit_of[storage.index()];
      if (row < 0) {
        row = static_cast<std::int32_t>(units_.size());
        units_.push_back({storage, {}, {}, 0});
      }
      Unit& unit = units_[static_cast<std::size_t>(row)];
      unit.offloads.push_back(o);
      unit.last_pack = std::max(unit.last_pack, start_of(trace_, m_.offloads[o]).event);
    }
    for (Unit& unit : units_) {
      const auto s = unit.storage.index();
      const EventId free = trace_.storages.free_event[s];
      if (free.valid()) delta_[free.index()] += trace_.storages.bytes[s];
      unit.end = end_of(unit);
      delta_[unit.end] -= trace_.storages.bytes[s];
    }
    for (const Reload& reload : m_.reloads) {
      delta_[await_of(trace_, reload).event.index()] += bytes_of(reload);
      delta_[end_of(reload)] -= bytes_of(reload);
    }
  }

  void release_for_budget() {
    std::stable_sort(units_.begin(), units_.end(),
                     [](const Unit& a, const Unit& b) { return a.last_pack < b.last_pack; });
    std::vector<std::size_t> pending;  // rows of units_, oldest first
    std::size_t next = 0;
    Bytes now = index_.bytes_at_begin();
    for (std::size_t e = 0; e < end_of_step(); ++e) {
      now += delta_[e];
      while (next < units_.size() && units_[next].last_pack.index() < e) pending.push_back(next++);
      if (delta_[e] <= 0 || now <= *budget_ || pending.empty()) continue;
      const Place place{index_.previous_anchor(EventId(e - 1)), Side::after};
      std::erase_if(pending, [&](std::size_t row) {
        Unit& unit = units_[row];
        if (unit.end <= e) return true;  // gone already
        if (now <= *budget_ || !can_leave(unit, place, e)) return false;
        for (const std::size_t o : unit.offloads) {
          if (!fixed_.release[o]) m_.release[o] = std::min(m_.release[o], place);
        }
        const Bytes bytes = trace_.storages.bytes[unit.storage.index()];
        delta_[unit.end] += bytes;
        unit.end = end_of(unit);
        delta_[unit.end] -= bytes;
        now -= bytes;
        return true;
      });
    }
  }

  // Whether releasing at `place` would make the unit's bytes go before event e.
  [[nodiscard]] bool can_leave(const Unit& unit, Place place, std::size_t e) const {
    Place last;
    for (const std::size_t o : unit.offloads) {
      last = std::max(last, fixed_.release[o] ? m_.release[o] : std::min(m_.release[o], place));
    }
    return end_of(unit.storage, last) <= e;
  }

  // The place right behind the release of what `reload` brings back.
  [[nodiscard]] Place earliest(const Reload& reload) const {
    return m_.release[reload.offload.index()];
  }

  [[nodiscard]] bool is_automatic(std::size_t r) const {
    return !fixed_.start_reload[r] && m_.reloads[r].copy_in == CopyMode::lane;
  }

  void latest_starts() {
    Nanoseconds next_start = std::numeric_limits<Nanoseconds>::max();
    for (std::size_t r = m_.reloads.size(); r-- > 0;) {
      const Reload& reload = m_.reloads[r];
      const Place await = await_of(trace_, reload);
      if (!is_automatic(r)) {
        m_.start_reload[r] = std::max(fixed_.start_reload[r].value_or(await), earliest(reload));
        next_start = std::min(next_start, time_[m_.start_reload[r].event.index()]);
        continue;
      }
      const Nanoseconds need = time_[await.event.index()];
      const Nanoseconds start =
          std::min(need, next_start) -
          expected_ns(trace_.calibration, trace_.calibration.h2d, bytes_of(reload));
      m_.start_reload[r] = std::max(at_or_before(start, await), earliest(reload));
      next_start = std::max(start, time_[m_.start_reload[r].event.index()]);
    }
  }

  // The last anchor whose time is at most `start`, ahead of `await` if it is as late as that.
  [[nodiscard]] Place at_or_before(Nanoseconds start, Place await) const {
    const auto later = std::upper_bound(time_.begin(), time_.end(), start);
    const auto row = static_cast<std::size_t>(later - time_.begin());
    const EventId anchor = index_.previous_anchor(EventId(row > 0 ? row - 1 : 0));
    return anchor < await.event ? Place{anchor, Side::after} : await;
  }

  void keep_order() {
    Place previous;
    for (std::size_t r = 0; r < m_.reloads.size(); ++r) {
      if (!is_automatic(r)) continue;
      m_.start_reload[r] = previous = std::max(m_.start_reload[r], previous);
    }
  }

  void starts_within_budget() {
    std::vector<Bytes> bytes(end_of_step());
    Bytes now = index_.bytes_at_begin();
    for (std::size_t e = 0; e < bytes.size(); ++e) bytes[e] = now += delta_[e];
    MemoryProfile profile(bytes);
    const auto take = [&](std::size_t r) {
      profile.add(m_.start_reload[r].event.index(), await_of(trace_, m_.reloads[r]).event.index(),
                  bytes_of(m_.reloads[r]));
    };
    for (std::size_t r = 0; r < m_.reloads.size(); ++r) {
      if (!is_automatic(r)) take(r);
    }
    Place previous;
    for (std::size_t r = 0; r < m_.reloads.size(); ++r) {
      if (!is_automatic(r)) continue;
      const Place await = await_of(trace_, m_.reloads[r]);
      Place start = std::max(m_.start_reload[r], previous);
      const std::size_t need = await.event.index();
      const std::size_t full =
          profile.last_above(start.event.index(), need, *budget_ - bytes_of(m_.reloads[r]));
      if (full < need) {
        const EventId anchor = index_.next_anchor(EventId(full + 1));
        start = anchor < await.event ? Place{anchor, Side::after} : await;
      }
      m_.start_reload[r] = previous = start;
      take(r);
    }
  }

  const TraceIndex& index_;
  const Trace& trace_;
  const std::vector<Nanoseconds>& time_;
  const FixedPoints& fixed_;
  const std::optional<Bytes> budget_;
  Movement& m_;
  std::vector<Unit> units_;
  std::vector<Bytes> delta_;  // one more than events: what outlives the step goes there
};

}  // namespace

LatestReleases latest_releases(const TraceIndex& index, const std::vector<Offload>& offloads,
                               const std::vector<Reload>& reloads) {
  const Trace& trace = index.trace();
  const Place end{EventId(index.event_count() - 1), Side::before};
  LatestReleases latest;
  latest.own.assign(offloads.size(), end);
  latest.any.assign(offloads.size(), end);
  for (const Reload& reload : reloads) {
    Place& own = latest.own[reload.offload.index()];
    own = std::min(own, await_of(trace, reload));
  }
  const auto& unpacks = trace.unpacks.event;  // in order of event
  for (std::size_t o = 0; o < offloads.size(); ++o) {
    const Place start = start_of(trace, offloads[o]);
    const auto next = std::upper_bound(unpacks.begin(), unpacks.end(), start.event);
    if (next != unpacks.end()) latest.any[o] = {*next, Side::before};
    const auto& writes = index.writes_of(offloads[o].storage);
    const auto write = std::upper_bound(writes.begin(), writes.end(), start.event);
    if (write != writes.end()) {
      const Place ahead{index.previous_anchor(EventId(write->index() - 1)), Side::after};
      latest.own[o] = std::min(latest.own[o], ahead);
      latest.any[o] = std::min(latest.any[o], ahead);
    }
    latest.any[o] = std::min(latest.any[o], latest.own[o]);
  }
  return latest;
}

void place_movement(const TraceIndex& index, const FixedPoints& fixed, std::optional<Bytes> budget,
                    Movement& movement) {
  STOWAGE_ASSERT(fixed.release.size() == movement.offloads.size());
  STOWAGE_ASSERT(fixed.start_reload.size() == movement.reloads.size());
  Placer(index, fixed, budget, movement).run();
}

}  // namespace stowage::simulator
