#include "simulator/machine/calibration_settings.h"

#include <gtest/gtest.h>

#include "tests/support/small_trace.h"

namespace stowage::simulator {
namespace {

TEST(CalibrationSettings, WhatIsSetIsWhatIsRead) {
  for (const CalibrationSetting& setting : calibration_settings()) {
    Calibration calibration = testing::small_trace().calibration;
    const double value = setting.unit.empty() ? 0.625 : 12.5;
    const Status set = apply_setting(calibration, setting.name, value);
    ASSERT_TRUE(set) << set.error().text();
    EXPECT_NEAR(setting_value(calibration, setting.name), value, 1e-6) << setting.name;
    EXPECT_FALSE(apply_setting(calibration, setting.name, setting.highest * 2)) << setting.name;
    EXPECT_FALSE(apply_setting(calibration, setting.name, -1)) << setting.name;
  }
}

TEST(CalibrationSettings, AnUnknownNameGetsTheNearestOne) {
  Calibration calibration;
  const Status set = apply_setting(calibration, "link.h2d_gbs", 1);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().hint, "did you mean link.h2d_gbps?");
}

}  // namespace
}  // namespace stowage::simulator
