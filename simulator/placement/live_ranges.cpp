#include "simulator/placement/live_ranges.h"

#include <algorithm>
#include <cstddef>

namespace stowage::simulator {
namespace {

using Slot = AllocationSequence::Slot;

}  // namespace

LiveRanges live_ranges(const AllocationSequence& sequence, const Trace& trace) {
  const Setup& setup = trace.setup;
  const OutsideMemory outside = outside_memory(trace);
  LiveRanges live;
  live.outside = outside.bytes;
  live.instants = static_cast<std::int32_t>(sequence.period.size()) + 1;
  const std::size_t slots = sequence.bytes.size();
  // A range lasts unless something in the period, or between two, says otherwise.
  std::vector<std::int32_t> begin(slots, -1);
  std::vector<std::int32_t> end(slots, -1);
  for (std::size_t i = 0; i < sequence.period.size(); ++i) {
    const AllocationSequence::Step& step = sequence.period[i];
    (step.free ? end : begin)[static_cast<std::size_t>(step.slot)] =
        static_cast<std::int32_t>(i) + 1;
  }
  live.of_slot.assign(slots, -1);
  const auto add = [&](Slot slot, std::int32_t from, std::int32_t until) {
    const Bytes bytes = sequence.bytes[static_cast<std::size_t>(slot)];
    if (bytes <= 0) return;
    live.of_slot[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(live.ranges.size());
    live.ranges.push_back({bytes, from, until});
  };
  const auto add_twice = [&](Slot slot, std::int32_t from, std::int32_t until) {
    add(slot, 0, live.instants);
    const Bytes bytes = sequence.bytes[static_cast<std::size_t>(slot)];
    if (bytes > 0) live.ranges.push_back({bytes, from, until, true});
  };
  const auto at = [](const std::vector<std::int32_t>& of, Slot slot) {
    return of[static_cast<std::size_t>(slot)];
  };
  std::vector<bool> is_done(slots, false);
  const auto done = [&](Slot slot) { is_done[static_cast<std::size_t>(slot)] = true; };
  for (const auto& [old, made] : sequence.carried) {
    if (at(end, old) > at(begin, made)) {
      add_twice(made, at(begin, made), at(end, old));
    } else {
      add(made, at(begin, made), live.instants + at(end, old));
    }
    live.of_slot[static_cast<std::size_t>(old)] = live.of_slot[static_cast<std::size_t>(made)];
    done(old);
    done(made);
  }
  for (const Slot slot : sequence.made_before) {
    add(slot, 0, at(end, slot));
    done(slot);
  }
  for (const Slot slot : sequence.freed_behind) {
    add(slot, at(begin, slot), live.instants);
    done(slot);
  }
  for (const Slot slot : sequence.adopted) done(slot);
  for (std::size_t s = 0; s < outside.is_storage.size(); ++s) {
    if (outside.is_storage[s]) done(static_cast<Slot>(s));
  }
  for (const Slot slot : sequence.lasting) {
    if (is_done[static_cast<std::size_t>(slot)]) continue;
    add(slot, 0, live.instants);
    done(slot);
  }
  for (std::size_t s = 0; s < slots; ++s) {
    if (is_done[s] || begin[s] < 0) continue;
    const bool wraps = end[s] < begin[s];
    add(static_cast<Slot>(s), begin[s], wraps ? live.instants + end[s] : end[s]);
  }
  std::vector<bool> is_freed(setup.size(), false);
  for (std::size_t row = 0; row < setup.size(); ++row) {
    if (setup.free_of[row] >= 0) is_freed[static_cast<std::size_t>(setup.free_of[row])] = true;
  }
  live.of_setup.assign(setup.size(), -1);
  for (std::size_t row = 0; row < setup.size(); ++row) {
    const bool is_held = setup.free_of[row] < 0 && !is_freed[row] && !setup.storage[row].valid();
    if (!is_held || setup.bytes[row] <= 0 || outside.is_setup[row]) continue;
    live.of_setup[row] = static_cast<std::int32_t>(live.ranges.size());
    live.ranges.push_back({setup.bytes[row], 0, live.instants});
  }
  return live;
}

LiveRanges taken_ranges(LiveRanges live) {
  for (LiveRange& range : live.ranges) {
    if (range.is_second) range = {range.bytes, 0, live.instants, true};
  }
  return live;
}

std::vector<Bytes> live_bytes(const LiveRanges& live) {
  const auto instants = static_cast<std::size_t>(live.instants);
  std::vector<Bytes> bytes(instants + 1, 0);
  bytes[0] += live.outside.active;
  for (const LiveRange& range : live.ranges) {
    const Bytes placed = placed_bytes(range.bytes);
    bytes[static_cast<std::size_t>(range.begin)] += placed;
    if (range.end <= live.instants) {
      bytes[static_cast<std::size_t>(range.end)] -= placed;
    } else {
      bytes[0] += placed;
      bytes[static_cast<std::size_t>(range.end - live.instants)] -= placed;
    }
  }
  bytes.pop_back();
  for (std::size_t i = 1; i < instants; ++i) bytes[i] += bytes[i - 1];
  return bytes;
}

std::vector<Bytes> live_bytes_by_event(const LiveRanges& live, const AllocationSequence& sequence,
                                       std::size_t events) {
  const std::vector<Bytes> by_instant = live_bytes(live);
  const auto& steps = sequence.period;
  std::vector<Bytes> by_event;
  by_event.reserve(events);
  std::size_t i = 0;
  for (std::size_t e = 0; e < events; ++e) {
    const auto is_of_event = [&](bool by_plan) {
      return i < steps.size() && steps[i].event.index() == e && steps[i].by_plan == by_plan;
    };
    while (is_of_event(false)) ++i;
    Bytes most = by_instant[i];
    while (is_of_event(true)) most = std::max(most, by_instant[++i]);
    by_event.push_back(most);
  }
  return by_event;
}

}  // namespace stowage::simulator
