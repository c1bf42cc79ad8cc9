#include "simulator/schedule/departures.h"

namespace stowage::simulator {

Hold hold_of_made(const Trace& trace, const Tenant& tenant) {
  return tenant.has_own_home ? Hold{} : hold_of(trace, tenant.storage);
}

std::vector<Departure> departures(const Trace& trace, const Schedule& schedule) {
  const auto& instructions = schedule.instructions;
  std::vector<std::int32_t> last_eviction(trace.storages.size(), -1);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].action != Action::evict) continue;
    const StayId stay = instructions[i].stay;
    if (!schedule.stays[stay.index()].is_made) continue;
    last_eviction[schedule.tenant(stay).storage.index()] = static_cast<std::int32_t>(i);
  }
  std::vector<Departure> out;
  out.reserve(schedule.stays.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].action != Action::evict) continue;
    const auto row = static_cast<std::int32_t>(i);
    const Stay& stay = schedule.stays[instructions[i].stay.index()];
    Departure departure;
    Hold hold;
    if (stay.is_made) {
      departure.storage = schedule.tenant(instructions[i].stay).storage;
      const std::size_t s = departure.storage.index();
      if (last_eviction[s] != row) continue;
      if (!trace.storages.alloc_event[s].valid() || trace.storages.device[s] != 0) continue;
      hold = hold_of_made(trace, schedule.tenant(instructions[i].stay));
    } else {
      departure.stay = instructions[i].stay;
      hold = hold_of(trace, stay.unpacks);
    }
    switch (leaving(hold, instructions[i].anchor.event)) {
      case Leaving::at_eviction:
        departure.instruction = row;
        break;
      case Leaving::behind_hold:
        departure.event = hold.event;
        break;
      case Leaving::never:
        break;
    }
    out.push_back(departure);
  }
  return out;
}

}  // namespace stowage::simulator
