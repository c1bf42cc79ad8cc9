#include "gui/model/axis_ticks.h"

#include <gtest/gtest.h>

namespace stowage::gui {
namespace {

std::vector<std::string> labels(const std::vector<AxisTick>& ticks) {
  std::vector<std::string> found;
  for (const AxisTick& tick : ticks) found.push_back(tick.label);
  return found;
}

TEST(AxisTicks, AreRoundAndHaveTheirUnit) {
  EXPECT_EQ(labels(byte_ticks(8e9, 63e9, 6)),
            (std::vector<std::string>{"10 GB", "20 GB", "30 GB", "40 GB", "50 GB", "60 GB"}));
  EXPECT_EQ(labels(time_ticks(2.5e9, 2.6e9, 3)),
            (std::vector<std::string>{"2.50 s", "2.55 s", "2.60 s"}));
  EXPECT_EQ(labels(byte_ticks(0, 3000, 4)),
            (std::vector<std::string>{"0 kB", "1 kB", "2 kB", "3 kB"}));
}

TEST(AxisTicks, AreNeverMoreThanAskedForAndWithinTheAxis) {
  for (double high = 3; high < 1e13; high *= 3.7) {
    for (int most = 2; most < 12; ++most) {
      const auto ticks = byte_ticks(high * 0.3, high, most);
      EXPECT_LE(ticks.size(), static_cast<std::size_t>(most)) << high;
      EXPECT_GE(ticks.size(), 1U) << high << " " << most;
      for (const AxisTick& tick : ticks) {
        EXPECT_GE(tick.value, high * 0.3 * (1 - 1e-9));
        EXPECT_LE(tick.value, high);
      }
    }
  }
  EXPECT_TRUE(byte_ticks(5, 5, 4).empty());
}

}  // namespace
}  // namespace stowage::gui
