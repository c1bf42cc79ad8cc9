#include "simulator/lowering/schedule_builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/schedule/host_slots.h"
#include "simulator/schedule/saved_tensor_tenant.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// Bytes are given up before others are taken, whatever the side.
int rank_of(Action action) {
  switch (action) {
    case Action::store:
      return 0;
    case Action::evict:
      return 1;
    case Action::load:
      return 2;
    case Action::await:
      return 3;
  }
  return 0;
}

class ScheduleBuilder {
 public:
  ScheduleBuilder(const StepIndex& index, Movement movement)
      : index_(index), trace_(index.trace()), m_(std::move(movement)) {}

  Schedule run() && {
    out_.has_hooks = true;
    out_.tenant_of.resize(trace_.saved.size());
    out_.stay_of.resize(trace_.unpacks.size());
    const std::size_t stays = m_.offloads.size() + m_.reloads.size() + m_.stays.size();
    out_.stays.reserve(stays);
    out_.tenants.reserve(stays - m_.reloads.size());
    out_.instructions.reserve(2 * m_.offloads.size() + 3 * m_.reloads.size() + 4 * m_.stays.size());
    add_offloads();
    add_reloads();
    add_parameters();
    sort_instructions();
    lay_out_host();
    return std::move(out_);
  }

 private:
  void add(Action action, StayId stay, Place place) {
    out_.instructions.push_back({action, stay, index_.anchor_at(place.event, place.side)});
  }

  void add_offloads() {
    for (std::size_t o = 0; o < m_.offloads.size(); ++o) {
      Offload& offload = m_.offloads[o];
      for (const SavedId s : offload.saved) out_.tenant_of[s.index()] = TenantId(o);
      const Place store = store_place(trace_, offload.saved);
      STOWAGE_ASSERT(store <= m_.release[o]);
      const StayId id(out_.stays.size());
      Stay stay;
      stay.tenant = TenantId(o);
      stay.is_made = stay.is_stored = true;
      stay.store_mode = offload.copy_out;
      out_.stays.push_back(std::move(stay));
      add(Action::store, id, store);
      add(Action::evict, id, m_.release[o]);
      out_.tenants.push_back({&kSavedTensor, offload.storage, offload.begin, offload.bytes, 0,
                              false, std::move(offload.saved)});
    }
  }

  void add_reloads() {
    for (std::size_t r = 0; r < m_.reloads.size(); ++r) {
      Reload& reload = m_.reloads[r];
      const StayId id(out_.stays.size());
      for (const UnpackId u : reload.unpacks) out_.stay_of[u.index()] = id;
      const Place start = m_.start_reload[r];
      const Place await = await_place(trace_, reload.unpacks);
      STOWAGE_ASSERT(m_.release[reload.offload] <= start);
      STOWAGE_ASSERT(start <= await);
      add(Action::load, id, start);
      add(Action::await, id, await);
      add(Action::evict, id, evict_place(trace_, reload.unpacks));
      Stay stay;
      stay.tenant = TenantId(reload.offload);
      stay.load_mode = reload.copy_in;
      stay.unpacks = std::move(reload.unpacks);
      out_.stays.push_back(std::move(stay));
    }
  }

  // Tenants in order of storages.
  [[nodiscard]] std::vector<TenantId> add_streaming() {
    std::vector<TenantId> of_storage(trace_.storages.size());
    std::vector<bool> streams(trace_.storages.size(), false);
    for (const ParameterStay& stay : m_.stays) streams[stay.storage.index()] = true;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (!streams[s]) continue;
      of_storage[s] = TenantId(out_.tenants.size());
      out_.tenants.push_back({&kParameter, StorageId(s), 0, trace_.storages.bytes[s], 0, true, {}});
    }
    return of_storage;
  }

  void add_parameters() {
    if (m_.stays.empty()) return;
    const std::vector<TenantId> tenant_of = add_streaming();
    const PeriodPosition period = period_of(index_.event_count());
    std::sort(m_.stays.begin(), m_.stays.end(), [](const ParameterStay& a, const ParameterStay& b) {
      return std::tie(a.await, a.storage) < std::tie(b.await, b.storage);
    });
    for (const ParameterStay& moved : m_.stays) {
      const StayId id(out_.stays.size());
      STOWAGE_ASSERT(-period < moved.start && moved.start <= moved.await);
      STOWAGE_ASSERT(0 <= moved.await && moved.await < period && moved.await < moved.evict);
      STOWAGE_ASSERT(moved.evict < moved.start + period);
      Stay stay;
      stay.tenant = tenant_of[moved.storage.index()];
      stay.is_stored = moved.store != kNoPosition;
      stay.wraps = moved.start < 0 || moved.evict >= period;
      STOWAGE_ASSERT(!stay.is_stored || (moved.await < moved.store && moved.store <= moved.evict));
      add(Action::load, id, place_at(moved.start, period));
      add(Action::await, id, place_at(moved.await, period));
      if (stay.is_stored) add(Action::store, id, place_at(moved.store, period));
      add(Action::evict, id, place_at(moved.evict, period));
      out_.stays.push_back(std::move(stay));
    }
  }

  void sort_instructions() {
    // By event, side, rank and row: small keys sort faster than instructions.
    struct Key {
      std::int64_t place_and_rank;
      std::int32_t row;
      std::uint32_t at;
      bool operator<(const Key& other) const {
        return std::tie(place_and_rank, row) < std::tie(other.place_and_rank, other.row);
      }
    };
    const auto& in = out_.instructions;
    std::vector<Key> keys(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int64_t place = position_of({in[i].anchor.event, in[i].anchor.side});
      keys[i] = {place * 4 + rank_of(in[i].action), in[i].stay.value,
                 static_cast<std::uint32_t>(i)};
    }
    std::sort(keys.begin(), keys.end());
    std::vector<Instruction> sorted;
    sorted.reserve(in.size());
    for (const Key& key : keys) sorted.push_back(in[key.at]);
    out_.instructions = std::move(sorted);
  }

  // Own homes first, each taken all the time; behind them the slots that are shared over time.
  void lay_out_host() {
    Bytes homes = 0;
    std::vector<SlotRequest> slots(m_.offloads.size());
    for (std::size_t t = 0; t < out_.tenants.size(); ++t) {
      Tenant& tenant = out_.tenants[t];
      if (tenant.has_own_home) {
        tenant.host_offset = homes;
        homes += (tenant.bytes + kHostSlotAlignment - 1) / kHostSlotAlignment * kHostSlotAlignment;
        continue;
      }
      slots[t] = {tenant.bytes, store_place(trace_, tenant.saved).event.value, -1};
    }
    for (const Stay& stay : out_.stays) {
      if (stay.unpacks.empty()) continue;
      auto& last = slots[stay.tenant.index()].last;
      last = std::max<std::int64_t>(last, evict_place(trace_, stay.unpacks).event.value);
    }
    for (SlotRequest& slot : slots) {  // never read again: taken until the step ends
      if (slot.last < 0) slot.last = static_cast<std::int64_t>(index_.event_count());
    }
    const ArenaLayout layout = lay_out(slots);
    for (std::size_t t = 0; t < slots.size(); ++t) {
      out_.tenants[t].host_offset = homes + layout.offset[t];
    }
    out_.host_bytes = homes + layout.bytes;
  }

  const StepIndex& index_;
  const Trace& trace_;
  Movement m_;
  Schedule out_;
};

}  // namespace

Schedule build_schedule(const StepIndex& index, Movement movement) {
  return ScheduleBuilder(index, std::move(movement)).run();
}

}  // namespace stowage::simulator
