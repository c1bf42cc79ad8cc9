#include "simulator/lowering/schedule_builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/schedule/host_slots.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// Bytes are given up before others are taken, whatever the side.
int rank_of(Action action) {
  switch (action) {
    case Action::start_offload:
      return 0;
    case Action::start_store:
      return 1;
    case Action::release:
      return 2;
    case Action::drop:
      return 3;
    case Action::evict:
      return 4;
    case Action::start_reload:
      return 5;
    case Action::start_load:
      return 6;
    case Action::await:
      return 7;
    case Action::await_load:
      return 8;
  }
  return 0;
}

std::int32_t row_of(const Instruction& i) {
  if (moves_parameter(i.action)) return i.residency.value;
  const bool leaves = i.action == Action::start_offload || i.action == Action::release;
  return leaves ? i.offload.value : i.reload.value;
}

// Fills in parameters and residencies and adds their instructions, which are not sorted yet.
void add_residencies(const StepIndex& index, std::vector<Stay> stays, Schedule& schedule) {
  const Position period = period_of(index.event_count());
  std::vector<std::int32_t> row_of_storage(index.trace().storages.size(), -1);
  for (const Stay& stay : stays) row_of_storage[stay.storage.index()] = 0;
  for (std::size_t s = 0; s < row_of_storage.size(); ++s) {
    if (row_of_storage[s] < 0) continue;
    row_of_storage[s] = static_cast<std::int32_t>(schedule.parameters.size());
    schedule.parameters.push_back({StorageId(s), index.trace().storages.bytes[s], 0});
  }
  std::sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
    return std::tie(a.await, a.storage) < std::tie(b.await, b.storage);
  });
  const auto add = [&](Action action, ResidencyId residency, Position position) {
    const Place place = place_at(position, period);
    schedule.instructions.push_back(
        {action, {}, {}, index.anchor_at(place.event, place.side), residency});
  };
  for (const Stay& stay : stays) {
    const ResidencyId id(schedule.residencies.size());
    const bool written = stay.store != kNoPosition;
    STOWAGE_ASSERT(-period < stay.start && stay.start <= stay.await);
    STOWAGE_ASSERT(0 <= stay.await && stay.await < period && stay.await < stay.evict);
    STOWAGE_ASSERT(!written || (stay.await < stay.store && stay.store <= stay.evict));
    STOWAGE_ASSERT(stay.evict < stay.start + period);
    schedule.residencies.push_back({ParameterId(row_of_storage[stay.storage.index()]),
                                    stay.start < 0 || stay.evict >= period, written});
    add(Action::start_load, id, stay.start);
    add(Action::await_load, id, stay.await);
    if (written) add(Action::start_store, id, stay.store);
    add(Action::evict, id, stay.evict);
  }
}

void add_instructions(const StepIndex& index, const Movement& m, Schedule& schedule) {
  const Trace& trace = index.trace();
  auto& out = schedule.instructions;
  out.reserve(2 * m.offloads.size() + 3 * m.reloads.size() + 4 * m.stays.size());
  for (std::size_t o = 0; o < m.offloads.size(); ++o) {
    const Place start = start_of(trace, m.offloads[o]);
    STOWAGE_ASSERT(start <= m.release[o]);
    out.push_back(
        {Action::start_offload, OffloadId(o), {}, index.anchor_at(start.event, start.side)});
    out.push_back({Action::release,
                   OffloadId(o),
                   {},
                   index.anchor_at(m.release[o].event, m.release[o].side)});
  }
  for (std::size_t r = 0; r < m.reloads.size(); ++r) {
    const Place start = m.start_reload[r];
    const Place await = await_of(trace, m.reloads[r]);
    const Place drop = drop_of(trace, m.reloads[r]);
    STOWAGE_ASSERT(m.release[m.reloads[r].offload.index()] <= start);
    STOWAGE_ASSERT(start <= await);
    for (const auto& [action, place] :
         {std::pair{Action::start_reload, start}, {Action::await, await}, {Action::drop, drop}}) {
      out.push_back({action, {}, ReloadId(r), index.anchor_at(place.event, place.side)});
    }
  }
}

void sort_instructions(Schedule& schedule) {
  // By event, side, rank and row: small keys sort faster than instructions.
  struct Key {
    std::int64_t place_and_rank;
    std::int32_t row;
    std::uint32_t at;
    bool operator<(const Key& other) const {
      return std::tie(place_and_rank, row) < std::tie(other.place_and_rank, other.row);
    }
  };
  const auto& in = schedule.instructions;
  std::vector<Key> keys(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::int64_t place =
        2 * std::int64_t{in[i].anchor.event.value} + (in[i].anchor.side == Side::after ? 1 : 0);
    keys[i] = {place * 16 + rank_of(in[i].action), row_of(in[i]), static_cast<std::uint32_t>(i)};
  }
  std::sort(keys.begin(), keys.end());
  std::vector<Instruction> out;
  out.reserve(in.size());
  for (const Key& key : keys) out.push_back(in[key.at]);
  schedule.instructions = std::move(out);
}

void lay_out_host(const StepIndex& index, Schedule& schedule) {
  std::vector<SlotRequest> slots(schedule.offloads.size());
  for (std::size_t o = 0; o < slots.size(); ++o) {
    slots[o].bytes = schedule.offloads[o].bytes;
    slots[o].first = start_of(index.trace(), schedule.offloads[o]).event.value;
    slots[o].last = -1;
  }
  for (const Reload& reload : schedule.reloads) {
    auto& last = slots[reload.offload.index()].last;
    last = std::max<std::int64_t>(last, drop_of(index.trace(), reload).event.value);
  }
  for (SlotRequest& slot : slots) {  // never read again: taken until the step ends
    if (slot.last < 0) slot.last = static_cast<std::int64_t>(index.event_count());
  }
  // Parameters are at home on the host: their slots are taken all the time.
  Bytes homes = 0;
  for (StreamedParameter& parameter : schedule.parameters) {
    parameter.host_offset = homes;
    homes += (parameter.bytes + kHostSlotAlignment - 1) / kHostSlotAlignment * kHostSlotAlignment;
  }
  const ArenaLayout layout = lay_out(slots);
  for (std::size_t o = 0; o < slots.size(); ++o) {
    schedule.offloads[o].host_offset = homes + layout.offset[o];
  }
  schedule.host_bytes = homes + layout.bytes;
}

}  // namespace

Schedule build_schedule(const StepIndex& index, Movement movement) {
  Schedule schedule;
  schedule.has_hooks = true;
  schedule.offload_of.resize(index.trace().saved.size());
  schedule.reload_of.resize(index.trace().unpacks.size());
  add_instructions(index, movement, schedule);
  add_residencies(index, std::move(movement.stays), schedule);
  sort_instructions(schedule);
  schedule.offloads = std::move(movement.offloads);
  schedule.reloads = std::move(movement.reloads);
  for (std::size_t o = 0; o < schedule.offloads.size(); ++o) {
    for (const SavedId s : schedule.offloads[o].saved)
      schedule.offload_of[s.index()] = OffloadId(o);
  }
  for (std::size_t r = 0; r < schedule.reloads.size(); ++r) {
    for (const UnpackId u : schedule.reloads[r].unpacks) {
      schedule.reload_of[u.index()] = ReloadId(r);
    }
  }
  lay_out_host(index, schedule);
  return schedule;
}

}  // namespace stowage::simulator
