// What a predicted step time is given or taken.
#pragma once

#include <algorithm>

#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::simulator {

// Half the width of its interval: 2 % of it, or twice `spread` where that is more: the distance of
// the quartiles of equal steps, of their median (Overhead::clean_spread; where a plan is measured
// also that of these steps).
[[nodiscard]] constexpr Nanoseconds step_interval(Nanoseconds step, Ppm spread) {
  constexpr Ppm kLeast = kPpm / 50;
  return static_cast<Nanoseconds>(Wide{step} * std::max(kLeast, 2 * spread) / kPpm);
}

// Of a step that was predicted by this recording; 0 on the CPU device, whose times nobody judges.
[[nodiscard]] inline Nanoseconds step_interval(const Trace& recording, Nanoseconds step) {
  if (recording.env.device == "cpu") return 0;
  return step_interval(step, recording.overhead.clean_spread);
}

}  // namespace stowage::simulator
