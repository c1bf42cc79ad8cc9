#include "simulator/schedule/lifetimes.h"

#include <algorithm>

namespace stowage::simulator {

std::vector<Departure> departures(const Trace& trace, const Schedule& schedule) {
  const auto& instructions = schedule.instructions;
  const auto storage_of = [&](std::size_t i) {
    return schedule.offloads[instructions[i].offload.index()].storage;
  };
  std::vector<std::int32_t> last_release(trace.storages.size(), -1);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].action != Action::release) continue;
    last_release[storage_of(i).index()] = static_cast<std::int32_t>(i);
  }
  std::vector<Departure> out;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].action != Action::release) continue;
    const StorageId storage = storage_of(i);
    const std::size_t s = storage.index();
    if (last_release[s] != static_cast<std::int32_t>(i)) continue;
    if (!trace.storages.alloc_event[s].valid() || trace.storages.device[s] != 0) continue;
    Departure departure{storage, {}, -1};
    if (const EventId natural = trace.storages.natural_free_event[s]; natural.valid()) {
      if (natural >= instructions[i].anchor.event) {
        departure.event = natural;
      } else {
        departure.instruction = static_cast<std::int32_t>(i);
      }
    }
    out.push_back(departure);
  }
  return out;
}

EventId buffer_end(const Trace& trace, const Reload& reload) {
  EventId last = trace.unpacks.event[reload.unpacks.back().index()];
  for (const UnpackId u : reload.unpacks) {
    const EventId released = trace.unpacks.released_event[u.index()];
    if (!released.valid()) return {};
    last = std::max(last, released);
  }
  return last;
}

}  // namespace stowage::simulator
