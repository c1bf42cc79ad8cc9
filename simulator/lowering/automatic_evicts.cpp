#include "simulator/lowering/automatic_evicts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "simulator/lowering/expected_times.h"
#include "simulator/schedule/departures.h"
#include "simulator/step/lifetimes.h"

namespace stowage::simulator {
namespace {

// What may leave as soon as its copies out are done: a storage with the last of its made stays, or
// the buffer of a loaded one.
struct Leaver {
  Bytes bytes = 0;
  std::size_t stay = 0;  // the first of a storage's
  Hold hold;
  EventId ready;        // they may leave behind it
  std::size_t end = 0;  // first event at which they are gone
};

class EvictPass {
 public:
  EvictPass(const StepIndex& index, std::optional<Bytes> budget, Movement& movement)
      : index_(index),
        trace_(index.trace()),
        time_(index.resident_time()),
        budget_(budget),
        period_(period_of(index.event_count())),
        step_end_(position_of({EventId(index.event_count() - 1), Side::before})),
        tenants_(movement.tenants),
        stays_(movement.stays),
        expected_(trace_.calibration, trace_.calibration.d2h) {}

  std::vector<Bytes> run() && {
    evict_when_stored();
    if (!budget_) return {};
    delta_ = index_.requested_delta();
    delta_.push_back(0);
    delta_.front() += index_.bytes_at_begin();
    add_storages();
    add_buffers();
    evict_for_budget();
    return std::move(delta_);
  }

 private:
  [[nodiscard]] std::size_t end_of_step() const { return index_.event_count(); }
  [[nodiscard]] Bytes bytes_of(const PlacedStay& stay) const {
    return tenants_[stay.tenant.index()].bytes;
  }
  // The begin of the period that the stay ends in.
  [[nodiscard]] PeriodPosition last_period(const PlacedStay& stay) const {
    return stay.earliest_evict < period_ ? 0 : period_;
  }

  // The D2H queue alone, in order of starts.
  void evict_when_stored() {
    queue_.reserve(stays_.size());
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      PlacedStay& stay = stays_[i];
      if (stay.has_store()) queue_.emplace_back(inside(stay.store, period_), i);
      stay.evict = stay.earliest_evict;
    }
    if (!std::is_sorted(queue_.begin(), queue_.end())) std::sort(queue_.begin(), queue_.end());
    for (const auto& [start, row] : queue_) {
      PlacedStay& stay = stays_[row];
      const EventId event = place_at(start, period_).event;
      Nanoseconds done = time_[event.index()];
      if (stay.store_mode == CopyMode::lane) done = copied_at(done, bytes_of(stay));
      const PeriodPosition place = first_anchor_at(event, done) + stay.store - start;
      stay.evict = std::max(stay.earliest_evict, std::min(place, latest_evict(row)));
    }
  }

  // No stay ends behind the begin of the next one of its tenant.
  [[nodiscard]] PeriodPosition latest_evict(std::size_t row) const {
    const PlacedStay& stay = stays_[row];
    const auto [next, later] = next_stay(stays_, row, period_);
    if (stays_[next].is_made) return stay.latest_evict;
    return std::min(stay.latest_evict, begin_of(stays_[next]) + later);
  }

  // Of a loaded stay, as far as it is known.
  [[nodiscard]] static PeriodPosition begin_of(const PlacedStay& stay) {
    return stay.has_fixed_load() ? stay.wanted_load : stay.await;
  }

  // When the D2H lane has done a copy that is ready at `ready`.
  Nanoseconds copied_at(Nanoseconds ready, Bytes bytes) {
    return lane_free_ = std::max(lane_free_, ready) + expected_.of(bytes);
  }

  // Behind the first anchor from `event` on that is not before `time`; the step's end at the
  // latest.
  [[nodiscard]] PeriodPosition first_anchor_at(EventId event, Nanoseconds time) const {
    const auto at = std::lower_bound(time_.begin() + event.value, time_.end(), time);
    if (at == time_.end()) return step_end_;
    const EventId done(static_cast<std::size_t>(at - time_.begin()));
    return std::min(position_of({index_.next_anchor(done), Side::after}), step_end_);
  }

  // First event at which bytes are gone that are evicted at `evict`, in the period of that. At an
  // unpack they still count for a load on demand, which comes ahead of an `after` evict.
  [[nodiscard]] std::size_t end_of(const Hold& hold, PeriodPosition evict) const {
    const Place place = place_at(evict, period_);
    switch (leaving(hold, place.event)) {
      case Leaving::never:
        return end_of_step();
      case Leaving::behind_hold:
        return hold.event.index() + 1;
      case Leaving::at_eviction:
        break;
    }
    const bool at_unpack = trace_.events.kind[place.event.index()] == EventKind::unpack;
    return place.event.index() + (at_unpack && place.side == Side::after ? 1 : 0);
  }

  // Each storage that is made in the step goes with the last of its made stays.
  void add_storages() {
    leavers_.reserve(queue_.size());
    std::vector<std::int32_t> leaver_of(trace_.storages.size(), -1);
    next_made_.assign(stays_.size(), -1);
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      const PlacedStay& stay = stays_[i];
      if (!stay.is_made) continue;
      const Tenant& tenant = tenants_[stay.tenant.index()];
      const StorageId storage = tenant.storage;
      const std::size_t s = storage.index();
      if (!trace_.storages.alloc_event[s].valid()) continue;
      const EventId ready = place_at(stay.store, period_).event;
      if (leaver_of[s] < 0) {
        leaver_of[s] = static_cast<std::int32_t>(leavers_.size());
        leavers_.push_back({trace_.storages.bytes[s], i, hold_of_made(trace_, tenant), ready, 0});
        continue;
      }
      Leaver& leaver = leavers_[static_cast<std::size_t>(leaver_of[s])];
      leaver.ready = std::max(leaver.ready, ready);
      next_made_[i] = std::exchange(next_made_[leaver.stay], static_cast<std::int32_t>(i));
    }
    for (Leaver& leaver : leavers_) {
      const StorageId storage = tenants_[stays_[leaver.stay].tenant.index()].storage;
      const EventId free = trace_.storages.free_event[storage.index()];
      if (free.valid()) delta_[free.index()] += leaver.bytes;
      leaver.end = end_of(leaver);
      delta_[leaver.end] -= leaver.bytes;
    }
  }

  void add_buffers() {
    for (const Tenant& tenant : tenants_) {
      const StorageId at_begin = tenant.at_begin();
      if (!tenant.has_own_home || !at_begin.valid()) continue;
      delta_.front() -= tenant.bytes;
      const EventId free = trace_.storages.free_event[at_begin.index()];
      if (free.valid()) delta_[free.index()] += tenant.bytes;
    }
    for (const PlacedStay& stay : stays_) {
      if (stay.is_made) continue;
      const PeriodPosition begin = begin_of(stay);
      const Bytes bytes = bytes_of(stay);
      delta_[place_at(begin, period_).event.index()] += bytes;
      delta_[end_of(hold_of(trace_, stay.unpacks), stay.evict)] -= bytes;
      if (begin < 0 || stay.evict >= period_) delta_.front() += bytes;
    }
    for (const auto& [start, row] : queue_) {
      const PlacedStay& stay = stays_[row];
      if (stay.is_made || stay.evict == stay.earliest_evict) continue;
      const Hold hold = hold_of(trace_, stay.unpacks);
      const EventId ready = place_at(stay.earliest_evict, period_).event;
      leavers_.push_back({bytes_of(stay), row, hold, ready, end_of(hold, stay.evict)});
    }
  }

  // When an event asks for more than there is, the oldest that wait for their copies go ahead of
  // it.
  void evict_for_budget() {
    const auto is_older = [](const Leaver& a, const Leaver& b) { return a.ready < b.ready; };
    std::stable_sort(leavers_.begin(), leavers_.end(), is_older);
    std::vector<std::size_t> pending;  // rows of leavers_, oldest first
    std::size_t next = 0;
    Bytes now = 0;
    for (std::size_t e = 0; e < end_of_step(); ++e) {
      now += delta_[e];
      // What may leave behind e does so ahead of the loads there.
      while (next < leavers_.size() && leavers_[next].ready.index() <= e) pending.push_back(next++);
      if (delta_[e] <= 0 || now <= *budget_ || pending.empty()) continue;
      const PeriodPosition place =
          position_of({index_.previous_anchor(EventId(e - 1)), Side::after});
      std::erase_if(pending, [&](std::size_t row) {
        Leaver& leaver = leavers_[row];
        if (leaver.end <= e) return true;  // gone already
        if (now <= *budget_ || end_of(leaver, place) > e) return false;
        leave(leaver, place);
        delta_[leaver.end] += leaver.bytes;
        leaver.end = end_of(leaver);
        delta_[leaver.end] -= leaver.bytes;
        now -= leaver.bytes;
        return true;
      });
    }
  }

  // Where the stay ends when it may leave at `place` of its last period.
  [[nodiscard]] PeriodPosition evict_at(const PlacedStay& stay, PeriodPosition place) const {
    return std::max(stay.earliest_evict, std::min(stay.evict, place + last_period(stay)));
  }

  void leave(const Leaver& leaver, PeriodPosition place) {
    for (auto row = static_cast<std::int32_t>(leaver.stay); row >= 0; row = next_made(row)) {
      PlacedStay& stay = stays_[static_cast<std::size_t>(row)];
      stay.evict = evict_at(stay, place);
    }
  }

  // First event at which the bytes are gone, as things are or when they may leave at `place`.
  [[nodiscard]] std::size_t end_of(const Leaver& leaver,
                                   std::optional<PeriodPosition> place = {}) const {
    PeriodPosition last = 0;
    for (auto row = static_cast<std::int32_t>(leaver.stay); row >= 0; row = next_made(row)) {
      const PlacedStay& stay = stays_[static_cast<std::size_t>(row)];
      last = std::max(last, place ? evict_at(stay, *place) : stay.evict);
    }
    return end_of(leaver.hold, last);
  }

  [[nodiscard]] std::int32_t next_made(std::int32_t row) const {
    return next_made_[static_cast<std::size_t>(row)];
  }

  const StepIndex& index_;
  const Trace& trace_;
  const std::vector<Nanoseconds>& time_;
  const std::optional<Bytes> budget_;
  const PeriodPosition period_;
  const PeriodPosition step_end_;
  const std::vector<Tenant>& tenants_;
  std::vector<PlacedStay>& stays_;
  std::vector<std::pair<PeriodPosition, std::size_t>> queue_;  // stores, in order of starts
  ExpectedTimes expected_;
  Nanoseconds lane_free_ = 0;
  std::vector<std::int32_t> next_made_;  // by stay, of the same storage; -1 = none
  std::vector<Leaver> leavers_;
  std::vector<Bytes> delta_;
};

}  // namespace

std::vector<Bytes> place_evicts(const StepIndex& index, std::optional<Bytes> budget,
                                Movement& movement) {
  return EvictPass(index, budget, movement).run();
}

}  // namespace stowage::simulator
