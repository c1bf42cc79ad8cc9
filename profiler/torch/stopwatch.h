// Wall time since a point in time, for measurements.
#pragma once

#include <chrono>

#include "traces/units.h"

namespace stowage::profiler {

[[nodiscard]] inline Nanoseconds time_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              begin)
      .count();
}

}  // namespace stowage::profiler
