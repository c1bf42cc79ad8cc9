// profiler/torch/measured_rest_gain: what is made of three measurements, and that the measuring
// rests.
#include "profiler/torch/measured_rest_gain.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "executor/layer.h"
#include "executor/step_driver.h"
#include "hand_step.h"

namespace stowage::profiler {
namespace {

using testing::hand_device;

Calibration gain_of(const RestedStep& without, const RestedStep& shortly,
                    const RestedStep& longer) {
  Calibration calibration;
  calibration.least_compute = 1;
  calibration.rest_gain = 1;
  set_rest_gain(without, shortly, longer, calibration);
  return calibration;
}

// 1000 ns of compute become 970 with 150 of rest: 200 saved for 1000 of rest; never below 930.
TEST(RestGain, ComesFromTheShortRestsAndItsEndFromTheLongOnes) {
  const Calibration c = gain_of({1000, 0}, {970, 150}, {930, 500});
  EXPECT_EQ(c.least_compute, 930'000);
  EXPECT_EQ(c.rest_gain, 200'000);
}

// Short rests gained nothing that shows: 70 of 500.
TEST(RestGain, ComesFromTheLongRestsOtherwise) {
  const Calibration c = gain_of({1000, 0}, {1002, 150}, {930, 500});
  EXPECT_EQ(c.least_compute, 930'000);
  EXPECT_EQ(c.rest_gain, 140'000);
}

TEST(RestGain, NoiseIsNone) {
  for (const RestedStep& longer :
       {RestedStep{991, 500}, RestedStep{1200, 500}, RestedStep{900, 0}}) {
    const Calibration c = gain_of({1000, 0}, {1000, 150}, longer);
    EXPECT_EQ(c.least_compute, kPpm);
    EXPECT_EQ(c.rest_gain, 0);
  }
}

class Measured : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = hand_device().host_arena(kBytes);
    ASSERT_TRUE(made.ok());
    arena = std::move(made).value();
    buffer = hand_device().allocate_buffer(kBytes, executor::kOffPlanTag);
    calibration.h2d.bytes_per_second = {10'000'000'000};
  }
  void measure(const std::function<void()>& step) {
    measure_rest_gain(hand_device(), prepare, step,
                      static_cast<std::byte*>(buffer.mutable_data_ptr()), arena.data(), kBytes,
                      calibration);
  }

  static constexpr Bytes kBytes = 64 << 10;
  std::function<void()> prepare;
  const at::Tensor weight = testing::parameter({64, 64});
  executor::HostArena arena;
  at::Tensor buffer;
  Calibration calibration;
};

TEST_F(Measured, RestsAreTakenAndNothingStays) {
  int steps = 0;
  int prepared = 0;
  prepare = [&] {
    EXPECT_EQ(prepared, steps);
    ++prepared;
  };
  measure([&] {
    ++steps;
    EXPECT_EQ(prepared, steps);
    const at::NoGradGuard guard;
    static_cast<void>(layer(
        "a", [](const std::vector<at::Tensor>& in) { return at::mm(in[0], in[0]); }, {weight}));
  });
  EXPECT_EQ(prepared, steps);
  EXPECT_GE(steps, 1 + 3 * 2);  // one to count layers; one to settle and one measured, each
  EXPECT_GT(calibration.least_compute, 0);
  EXPECT_LE(calibration.least_compute, kPpm);
  EXPECT_GE(calibration.rest_gain, 0);
  EXPECT_LE(calibration.rest_gain, kPpm / 2);
  EXPECT_EQ(executor::driver(), nullptr);
}

TEST_F(Measured, AStepWithoutLayersIsRunOnce) {
  int steps = 0;
  measure([&] { ++steps; });
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(calibration.least_compute, kPpm);
  EXPECT_EQ(calibration.rest_gain, 0);
}

TEST_F(Measured, AStepThatThrowsLeavesNoDriver) {
  EXPECT_THROW(measure([] { throw std::runtime_error("out"); }), std::runtime_error);
  EXPECT_EQ(executor::driver(), nullptr);
}

}  // namespace
}  // namespace stowage::profiler
