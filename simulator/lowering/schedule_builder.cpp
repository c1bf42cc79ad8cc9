#include "simulator/lowering/schedule_builder.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "simulator/schedule/host_slots.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// At one place, as they are carried out: bytes are given up before others are taken.
constexpr Action kOrder[kActions] = {Action::store, Action::evict, Action::update, Action::load,
                                     Action::await};
constexpr std::int64_t rank_of(Action action) {
  std::int64_t rank = 0;
  while (kOrder[rank] != action) ++rank;
  return rank;
}

class ScheduleBuilder {
 public:
  ScheduleBuilder(const StepIndex& index, Movement movement)
      : index_(index),
        trace_(index.trace()),
        period_(period_of(index.event_count())),
        stays_(std::move(movement.stays)) {
    out_.tenants = std::move(movement.tenants);
  }

  Schedule run() && {
    out_.has_hooks = true;
    out_.tenant_of.resize(trace_.saved.size());
    out_.stay_of.resize(trace_.unpacks.size());
    for (std::size_t t = 0; t < out_.tenants.size(); ++t) {
      for (const SavedId s : out_.tenants[t].saved) out_.tenant_of[s.index()] = TenantId(t);
    }
    sort_stays();
    lay_out_host();
    add_stays();
    add_instructions();
    return std::move(out_);
  }

 private:
  void sort_stays() {
    std::vector<std::int32_t> kind(out_.tenants.size());  // by tenant: the how many-th
    for (std::size_t t = 1; t < out_.tenants.size(); ++t) {
      kind[t] = kind[t - 1] + (out_.tenants[t].kind != out_.tenants[t - 1].kind ? 1 : 0);
    }
    const auto key = [&](const PlacedStay& stay) {
      return std::tuple(kind[stay.tenant.index()], !stay.is_made, stay.await, stay.tenant);
    };
    const auto is_ahead = [&](const PlacedStay& a, const PlacedStay& b) { return key(a) < key(b); };
    if (!std::is_sorted(stays_.begin(), stays_.end(), is_ahead)) {
      std::sort(stays_.begin(), stays_.end(), is_ahead);
    }
  }

  void check(const PlacedStay& stay) const {
    if (stay.is_made) {
      STOWAGE_ASSERT(0 <= stay.store && stay.store <= stay.evict && stay.evict < period_);
      return;
    }
    STOWAGE_ASSERT(-period_ < stay.load && stay.load <= stay.await);
    STOWAGE_ASSERT(0 <= stay.await && stay.await < period_ && stay.await < stay.evict);
    // Its home is updated in between, possibly at that one place.
    const bool is_updated = stay.update != kNoPosition && !stay.has_store();
    const PeriodPosition apart = is_updated ? 0 : 1;
    STOWAGE_ASSERT(stay.evict + apart <= stay.load + period_);
    STOWAGE_ASSERT(!is_updated || stay.evict <= stay.update);
    STOWAGE_ASSERT(!stay.has_store() || (stay.await < stay.store && stay.store <= stay.evict));
  }

  void add_stays() {
    keys_.reserve(kActions * stays_.size());
    out_.stays.reserve(stays_.size());
    for (PlacedStay& stay : stays_) {
      check(stay);
      const StayId id(out_.stays.size());
      stay.is_stored = stay.has_store();
      stay.wraps = !stay.is_made && (stay.load < 0 || stay.evict >= period_);
      for (const UnpackId u : stay.unpacks) out_.stay_of[u.index()] = id;
      if (stay.is_stored) add_key<Action::store>(id, stay.store);
      add_key<Action::evict>(id, stay.evict);
      if (stay.update != kNoPosition && stay.has_store()) {
        add_key<Action::update>(id, stay.update);
      }
      if (!stay.is_made) {
        add_key<Action::load>(id, stay.load);
        add_key<Action::await>(id, stay.await);
      }
      out_.stays.push_back(std::move(stay));
    }
  }

  template <Action kAction>
  void add_key(StayId stay, PeriodPosition position) {
    constexpr std::int64_t kRank = rank_of(kAction);
    keys_.push_back({inside(position, period_) * std::int64_t{kActions} + kRank, stay});
  }

  void add_instructions() {
    std::sort(keys_.begin(), keys_.end());
    out_.instructions.reserve(keys_.size());
    for (const Key& key : keys_) {
      const Place place = place_at(key.place_and_rank / std::int64_t{kActions}, period_);
      const Action action = kOrder[key.place_and_rank % std::int64_t{kActions}];
      out_.instructions.push_back({action, key.stay, index_.anchor_at(place.event, place.side)});
    }
  }

  // Own homes first, each taken all the time; behind them the slots that are shared over time.
  void lay_out_host() {
    Bytes homes = 0;
    std::vector<SlotRequest> slots(out_.tenants.size());
    for (std::size_t t = 0; t < out_.tenants.size(); ++t) {
      Tenant& tenant = out_.tenants[t];
      if (!tenant.has_own_home) {
        slots[t] = {tenant.bytes, -1, -1};
        continue;
      }
      tenant.host_offset = homes;
      homes += slot_bytes(tenant.bytes);
    }
    for (const PlacedStay& stay : stays_) {
      SlotRequest& slot = slots[stay.tenant.index()];
      if (stay.has_store()) {
        const std::int64_t stored = place_at(stay.store, period_).event.value;
        if (slot.first < 0 || stored < slot.first) slot.first = stored;
      }
      if (stay.is_made) continue;
      slot.last = std::max<std::int64_t>(slot.last, place_at(stay.evict, period_).event.value);
    }
    for (SlotRequest& slot : slots) {  // never read again: taken until the step ends
      if (slot.last < 0) slot.last = static_cast<std::int64_t>(index_.event_count());
    }
    const ArenaLayout layout = lay_out(slots);
    for (std::size_t t = 0; t < slots.size(); ++t) {
      if (!out_.tenants[t].has_own_home) out_.tenants[t].host_offset = homes + layout.offset[t];
    }
    out_.host_bytes = homes + layout.bytes;
  }

  // By event, side, rank and row: small keys sort faster than instructions.
  struct Key {
    std::int64_t place_and_rank;
    StayId stay;
    bool operator<(const Key& other) const {
      return std::tie(place_and_rank, stay) < std::tie(other.place_and_rank, other.stay);
    }
  };

  const StepIndex& index_;
  const Trace& trace_;
  const PeriodPosition period_;
  std::vector<PlacedStay> stays_;
  std::vector<Key> keys_;
  Schedule out_;
};

}  // namespace

Schedule build_schedule(const StepIndex& index, Movement movement) {
  return ScheduleBuilder(index, std::move(movement)).run();
}

}  // namespace stowage::simulator
