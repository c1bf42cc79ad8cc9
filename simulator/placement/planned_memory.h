// Planned memory of a schedule: what its placement takes from the driver.
#pragma once

#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

struct PlannedMemory {
  LiveRanges live;
  DevicePlacement placement;
};

// All that is on the device in a period that repeats: the step's own, buffers of loads, what lasts,
// and what the recording's process held besides. Cost: that of allocation_sequence() and place().
[[nodiscard]] PlannedMemory planned_memory(const StepIndex& index, const Schedule& schedule);

// A part of its cost.
[[nodiscard]] PlannedBytes planned_bytes(const StepIndex& index, const Schedule& schedule);

}  // namespace stowage::simulator
