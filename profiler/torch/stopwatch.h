// Wall time since a point in time, and the median of several such times, for measurements.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "traces/units.h"

namespace stowage::profiler {

[[nodiscard]] inline Nanoseconds time_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              begin)
      .count();
}

// The upper one of an even number; there is one at least.
[[nodiscard]] inline Nanoseconds median(std::vector<Nanoseconds> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace stowage::profiler
