// simulator/launch_pace: work behind a wait is slow until enough of it is done.
#include "simulator/machine/launch_pace.h"

#include <gtest/gtest.h>

namespace stowage::simulator {
namespace {

Calibration at_speed(Ppm speed) {
  Calibration calibration;
  calibration.woken_launch = speed;
  return calibration;
}

TEST(LaunchPace, IsSlowBehindAWaitUntilItIsWarm) {
  LaunchPace pace(at_speed(400'000));
  EXPECT_EQ(pace.time_of(1000), 1000);  // nothing was waited for yet
  pace.woken();
  EXPECT_EQ(pace.time_of(0), 0);
  EXPECT_EQ(pace.time_of(1000), 2500);
  EXPECT_EQ(pace.time_of(248'000), 620'000);
  EXPECT_EQ(pace.time_of(3000), 2500 + 2000);  // the last 1000 of it, then warm
  EXPECT_EQ(pace.time_of(1000), 1000);
  pace.woken();
  pace.woken();  // does not add up
  EXPECT_EQ(pace.time_of(300'000), 625'000 + 50'000);
}

TEST(LaunchPace, IsAsRecordedAtFullSpeedAndNeverSlowerThanAHundredth) {
  LaunchPace same(at_speed(kPpm));
  same.woken();
  EXPECT_EQ(same.time_of(1000), 1000);
  LaunchPace least(at_speed(0));
  least.woken();
  EXPECT_EQ(least.time_of(1000), 100'000);
}

}  // namespace
}  // namespace stowage::simulator
