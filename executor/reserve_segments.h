// Takes memory from the device's driver ahead of a planned step, so that none of its steps has to;
// and once more behind its first step, where what is not as foreseen can be seen.
#pragma once

#include <string>
#include <vector>

#include "executor/device/device.h"
#include "simulator/allocator/allocator_outlook.h"
#include "traces/units.h"

namespace stowage::executor {

// Allocates `buffers` (bytes, in order) and frees them again: what they take from the driver stays
// cached. simulator/allocator/allocator_replay.h says which these are (buffers_ahead) in a process
// that has done what the recorded one had; in one with more in its cache they may take nothing.
// Does nothing on a device without a caching allocator. Where there is no memory for all of them,
// the rest is left out.
void reserve_segments(Device& device, const std::vector<Bytes>& buffers);

// Looks ahead (simulator/allocator/allocator_outlook.h) from where the allocator now is, behind a
// step that went as planned and of which nothing is held, and takes what the steps to come would
// take; up to four times, where the driver does not place a segment as foreseen. `first_serial`:
// allocations of that step have this number or a later one. Returns what was seen and done, for
// people; it begins with "not known" where that is nothing. Cost: the outlook's, 0.2 s for a GPT-2,
// twice that where it takes something.
std::string reserve_for_later_steps(Device& device, const simulator::AllocatorOutlook& outlook,
                                    std::int64_t first_serial);

}  // namespace stowage::executor
