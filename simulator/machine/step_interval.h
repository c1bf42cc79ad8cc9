// What a predicted step time is given or taken (docs/decisions/0043).
#pragma once

#include <algorithm>

#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::simulator {

// Half the width of the interval of a step that was predicted by this recording: 2 % of it, or
// twice the spread where that is more, of the recording's clean steps or `measured`, of the steps
// that it is compared with. 0 on the CPU device, whose times nobody judges.
[[nodiscard]] inline Nanoseconds step_interval(const Trace& recording, Nanoseconds step,
                                               Ppm measured = 0) {
  if (recording.env.device == "cpu") return 0;
  constexpr Ppm kLeast = kPpm / 50;
  const Ppm spread = std::max(recording.overhead.clean_spread, measured);
  return static_cast<Nanoseconds>(Wide{step} * std::max(kLeast, 2 * spread) / kPpm);
}

}  // namespace stowage::simulator
