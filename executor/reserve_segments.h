// Takes memory from the device's driver ahead of a planned step, so that none of its steps has to.
#pragma once

#include <vector>

#include "executor/device/device.h"
#include "traces/units.h"

namespace stowage::executor {

// For each of `segments` (bytes, in order): buffers are made until the allocator takes a segment
// from the driver; all of them go at the end. What simulator/allocator_replay.h foresees. Does
// nothing on a device that does not count what it takes. Where there is no memory for all of it,
// the rest is left out: the steps then take it themselves. Cost: one driver call a segment.
void reserve_segments(Device& device, const std::vector<Bytes>& segments);

}  // namespace stowage::executor
