// The time model of a GPU step as one recursion: the launch thread reaches event e after its gaps;
// the kernels launched in the gap ahead of e run in order, each batch at the later of the end of
// what came before and the launch thread's arrival. docs/simulator.md has the same model with
// copies; a test compares the two. Here it serves to put measured times onto the clean step's
// scale.
#pragma once

#include <vector>

#include "traces/units.h"

namespace stowage::profiler {

struct TwoClocks {
  // By event; row 0 is the step's begin.
  std::vector<Nanoseconds> launch;   // launch thread's work since the event before, waits left out
  std::vector<Nanoseconds> compute;  // device work launched in that gap
  // 1 = in the gap ahead of the event the launch thread waited for the device.
  std::vector<std::uint8_t> sync;
};

// Factors on times: 1 = as measured.
struct Scales {
  double launch = 1;
  double compute = 1;
};

// When launch thread and device have both reached the last event. Never decreases with either
// scale. Cost: O(events).
[[nodiscard]] Nanoseconds step_end(const TwoClocks& clocks, const Scales& scales);

// The scales under which the step takes `clean` ns:
//   - even as measured it is shorter: both grow by one factor;
//   - device work alone is longer: the launch thread is slowed as much as costs half a percent
//     (the slowest one that the device hides), then both shrink by one factor;
//   - otherwise the device's times stay, and the launch thread gets the largest factor that fits.
// clean <= 0, or a step without work: as measured.
[[nodiscard]] Scales fit_scales(const TwoClocks& clocks, Nanoseconds clean);

}  // namespace stowage::profiler
