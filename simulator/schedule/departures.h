// When the bytes that a schedule moves go away, in program order.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/step/lifetimes.h"
#include "traces/trace.h"

namespace stowage::simulator {

// How a storage, or a stay's buffer, goes: behind `event`, ahead of the next event's action; at the
// instruction in row `instruction`; or, with neither, not within the step.
struct Departure {
  StorageId storage;  // of made stays
  StayId stay;        // of loaded ones
  EventId event;
  std::int32_t instruction = -1;
};

// Until when the model itself holds what is made for the tenant. An own home takes all memory of
// its storage, so that nobody holds any (executor/planned_gradients.h).
[[nodiscard]] Hold hold_of_made(const Trace& trace, const Tenant& tenant);

// In order of instructions: one for each storage of device 0 that was made in the step and has made
// stays, at the last of their evictions; one for each loaded stay, at its own. Storages that
// existed before the step stay as recorded, those of them with an own home are there in loaded
// stays alone.
// Cost: O(instructions + storages).
[[nodiscard]] std::vector<Departure> departures(const Trace& trace, const Schedule& schedule);

}  // namespace stowage::simulator
