#include "profiler/torch/calibrate.h"

#include <gtest/gtest.h>

#include "executor/saved_tensor_engine.h"
#include "hand_step.h"
#include "profiler/torch/issue_costs.h"
#include "simulator/link_model.h"

namespace stowage::profiler {
namespace {

using testing::hand_device;

TEST(Calibrate, GivesUsableCurvesAndFactors) {
  // The first product makes cuBLAS take its workspace, which stays.
  ASSERT_TRUE(calibrate(hand_device(), {.largest = Bytes{4} << 10, .repetitions = 1}).ok());
  const Bytes before = hand_device().memory().requested;
  const auto calibration = calibrate(hand_device(), {.largest = Bytes{1} << 20, .repetitions = 3});
  ASSERT_TRUE(calibration.ok()) << calibration.error().message;
  for (const LinkCurve* curve : {&calibration->d2h, &calibration->h2d}) {
    EXPECT_TRUE(simulator::is_usable(*curve));
    EXPECT_EQ(curve->bytes, (std::vector<Bytes>{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}));
    EXPECT_EQ(curve->bytes_per_second_p10.size(), curve->bytes.size());
    EXPECT_GT(curve->latency, 0);
  }
  for (const Ppm factor :
       {calibration->duplex, calibration->compute_interference, calibration->copy_interference}) {
    EXPECT_GT(factor, 0);
    EXPECT_LE(factor, kPpm);
  }
  EXPECT_EQ(calibration->samples, 3);
  EXPECT_EQ(hand_device().memory().requested, before);  // nothing stays
}

TEST(Calibrate, ASizeThatTheHostDoesNotHaveIsAnError) {
  const auto calibration = calibrate(hand_device(), {.largest = Bytes{1} << 49});
  ASSERT_FALSE(calibration.ok());
  EXPECT_EQ(calibration.error().code, ErrorCode::environment);
}

TEST(IssueCosts, AreMeasuredAndLeaveNothingBehind) {
  executor::install_saved_tensor_engine();
  auto arena = hand_device().host_arena(Bytes{64} << 10);
  ASSERT_TRUE(arena.ok());
  const Bytes before = hand_device().memory().requested;
  Calibration calibration;
  measure_issue_costs(hand_device(), arena->data(), arena->bytes(), calibration);
  EXPECT_GT(calibration.launch_ns, 0);
  EXPECT_GT(calibration.sync_ns, 0);
  EXPECT_GT(calibration.copy_issue_ns, 0);
  EXPECT_GT(calibration.wait_issue_ns, 0);
  EXPECT_GE(calibration.hook_ns, 0);
  EXPECT_EQ(executor::driver(), nullptr);
  EXPECT_EQ(hand_device().memory().requested, before);
}

}  // namespace
}  // namespace stowage::profiler
