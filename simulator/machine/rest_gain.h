// What compute gains by waiting for copies, on a GPU at its power limit: Calibration::least_compute
// and rest_gain as the replay and the bounds use them.
#pragma once

#include <algorithm>

#include "traces/trace.h"

namespace stowage::simulator {

struct RestGain {
  Ppm boost = kPpm;                  // speed of compute while there is credit; kPpm = never faster
  std::int64_t credit_per_rest = 0;  // of such time, for each nanosecond of rest; ppm
  Ppm saved_per_rest = 0;            // what that saves: less than rest_gain by rounding
};

// A gain of compute below 0.1 % is noise; factors are cut to what makes sense.
[[nodiscard]] inline RestGain rest_gain(const Calibration& calibration) {
  constexpr Ppm kLeastBoost = 1000;
  const Ppm boost = kPpm * kPpm / std::clamp<Ppm>(calibration.least_compute, kPpm / 4, kPpm);
  const Ppm gain = std::clamp<Ppm>(calibration.rest_gain, 0, kPpm);
  if (boost < kPpm + kLeastBoost || gain == 0) return {};
  // Each nanosecond at this speed saves boost - 1.
  return {boost, gain * kPpm / (boost - kPpm), gain};
}

}  // namespace stowage::simulator
