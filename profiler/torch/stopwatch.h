// Wall time since a point in time; the median of several such times, and how far they are apart.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
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

// The distance of their quartiles, of their median; at most kPpm, and 0 for less than four.
[[nodiscard]] inline Ppm spread_of(std::vector<Nanoseconds> times) {
  std::sort(times.begin(), times.end());
  const std::size_t count = times.size();
  if (count < 4 || times[count / 2] <= 0) return 0;
  const Wide distance = times[count * 3 / 4] - times[count / 4];
  return static_cast<Ppm>(std::min<Wide>(distance * kPpm / times[count / 2], kPpm));
}

}  // namespace stowage::profiler
