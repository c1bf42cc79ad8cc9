// Copies queued one behind the other on a lane, timed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/device/device.h"
#include "traces/units.h"

namespace stowage::profiler {

// The two ends of a lane's copies; not owned.
struct CopyEnds {
  std::byte* device = nullptr;
  std::byte* host = nullptr;
};

// Queues one copy of `bytes` the way that the lane goes.
executor::CopyTicket start_copy(executor::Device& device, executor::CopyLane lane,
                                const CopyEnds& ends, Bytes bytes);

// `count` copies one after the other; from an idle device until the CPU sees the last one done.
// At least 1.
[[nodiscard]] Nanoseconds time_of_copies(executor::Device& device, executor::CopyLane lane,
                                         const CopyEnds& ends, Bytes bytes, int count);

// What one copy takes, from the times of `count` of them and of twice as many: the difference, in
// which what starting and ending a measurement costs cancels out. Whatever disturbed the first
// alone makes that too small, even negative, so half of what a copy takes on average is the least
// that is believed. At least 1.
[[nodiscard]] Nanoseconds time_of_one_copy(Nanoseconds of_count, Nanoseconds of_twice, int count);

// Bytes a second, at least 1. The time is positive.
[[nodiscard]] std::int64_t copy_rate(Bytes bytes, Nanoseconds time);

}  // namespace stowage::profiler
