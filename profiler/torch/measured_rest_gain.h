// How much faster a GPU at its power limit computes when it rests now and then: one that only
// computes is held to a clock below the highest, one that waits for a copy between layers is not.
// (Seen on an H200 with bf16 products: 693 W and 1640 MHz without rests; 570 W and 1920 MHz, 7 %
// less compute time, with a third of the time at rest.)
#pragma once

#include <functional>

#include "executor/device/device.h"
#include "traces/trace.h"

namespace stowage::profiler {

// One step with rests, or the mean of several: wall time = compute + rest.
struct RestedStep {
  Nanoseconds compute = 0;
  Nanoseconds rest = 0;
};

// Calibration::least_compute and rest_gain from steps with no rest, short ones and long ones. What
// is within 1 % is noise: no gain.
void set_rest_gain(const RestedStep& without, const RestedStep& shortly, const RestedStep& longer,
                   Calibration& calibration);

// Runs `step` without rests, with about 15 % and with about 50 % of its time at rest in addition:
// compute waits for copies of `bytes` from `host` to `memory` at the begin and end of layers; both
// are overwritten or left as they are. Only means something where the GPU is busy all the time
// without rests (the assembly knows). Does nothing where the step has no layers. Takes 4 to 8 steps
// when they are long, half a second of warm-up for each of the three when they are short.
// `prepare` is called ahead of each, outside of what is timed; it may be empty. Exceptions of the
// step pass through, no driver stays.
void measure_rest_gain(executor::Device& device, const std::function<void()>& prepare,
                       const std::function<void()>& step, std::byte* memory, const std::byte* host,
                       Bytes bytes, Calibration& calibration);

}  // namespace stowage::profiler
