#include "gui/model/axis_ticks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace stowage::gui {
namespace {

struct AxisUnit {
  double size;
  const char* name;
};

double round_step(double low, double high, int most) {
  const double least = (high - low) / std::max(most, 2);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    const double step = factor * power;
    // Ends that lie on a tick both count.
    if (std::floor(high / step) - std::ceil(low / step) + 1 <= std::max(most, 2)) return step;
  }
  return 20.0 * power;
}

template <std::size_t n>
std::vector<AxisTick> ticks(double low, double high, int most,
                            const std::array<AxisUnit, n>& units) {
  std::vector<AxisTick> found;
  if (!(high > low)) return found;
  const double step = round_step(low, high, most);
  const double largest = std::max(std::abs(low), std::abs(high));
  AxisUnit unit = units.front();
  for (const AxisUnit& larger : units) {
    if (largest >= larger.size) unit = larger;
  }
  const int decimals =
      std::max(0, static_cast<int>(-std::floor(std::log10(step / unit.size) + 1e-9)));
  for (double at = std::ceil(low / step); at * step <= high; ++at) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f %s", decimals, at * step / unit.size, unit.name);
    found.push_back({at * step, text});
  }
  return found;
}

}  // namespace

std::vector<AxisTick> byte_ticks(double low, double high, int most) {
  static constexpr std::array<AxisUnit, 5> kUnits{
      {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}}};
  return ticks(low, high, most, kUnits);
}

std::vector<AxisTick> time_ticks(double low, double high, int most) {
  static constexpr std::array<AxisUnit, 4> kUnits{
      {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};
  return ticks(low, high, most, kUnits);
}

}  // namespace stowage::gui
