// Round numbers along an axis, with their unit.
#pragma once

#include <string>
#include <vector>

#include "traces/units.h"

namespace stowage::gui {

struct AxisTick {
  double value = 0;
  std::string label;  // "12.5 GB"
};

// Multiples of 1, 2 or 5 times a power of ten within [low, high], at most `most` (at least 2); all
// labels have the same unit and as many decimals as the step needs. Empty when high <= low.
// Bytes are 1000-based.
[[nodiscard]] std::vector<AxisTick> byte_ticks(double low, double high, int most);
[[nodiscard]] std::vector<AxisTick> time_ticks(double low, double high, int most);

}  // namespace stowage::gui
