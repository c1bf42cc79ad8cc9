// Takes memory from the device's driver ahead of a planned step, so that none of its steps has to.
#pragma once

#include <vector>

#include "executor/device/device.h"
#include "traces/units.h"

namespace stowage::executor {

// Allocates `buffers` (bytes, in order) and frees them again: what they take from the driver stays
// cached. simulator/allocator_replay.h says which these are (buffers_ahead) in a process that has
// done what the recorded one had; in one with more in its cache they may take nothing. Does nothing
// on a device without a caching allocator. Where there is no memory for all of them, the rest is
// left out.
void reserve_segments(Device& device, const std::vector<Bytes>& buffers);

}  // namespace stowage::executor
