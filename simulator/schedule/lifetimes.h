// When the bytes that a schedule moves go away, in program order: the one statement of these rules
// for all that counts memory (docs/simulator.md, "memory").
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/schedule/schedule.h"

namespace stowage::simulator {

// How an offloaded storage goes. Behind `event`, ahead of the next event's action; at the
// instruction in row `instruction`; or, with neither, not within the step.
struct Departure {
  StorageId storage;
  EventId event;
  std::int32_t instruction = -1;
};

// One for each offloaded storage of device 0 that was made in the step, in order of their last
// releases: that is when the bytes go, or, if that is later, when the model itself lets go.
// Storages that existed before the step stay as recorded. Cost: O(instructions + storages).
[[nodiscard]] std::vector<Departure> departures(const Trace& trace, const Schedule& schedule);

// The event behind which a reload's buffer goes; none when it outlives the step.
[[nodiscard]] EventId buffer_end(const Trace& trace, const Reload& reload);

}  // namespace stowage::simulator
