// profiler/torch/woken_launch: that a step waits at each pack and leaves nothing behind, and what
// is made of the time that it works between its waits.
#include "profiler/torch/woken_launch.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "executor/step_driver.h"
#include "hand_step.h"
#include "tests/support/micro_trace.h"

namespace stowage::profiler {
namespace {

using testing::hand_device;

class WakingStep : public ::testing::Test {
 protected:
  at::Tensor weight =
      at::ones({64, 64}, at::TensorOptions(hand_device().torch_device())).set_requires_grad(true);
  bool fails = false;
  std::vector<std::int64_t> batches;
  StepFunctions functions;

  WakingStep() {
    functions.prepare = [this](std::int64_t k) { batches.push_back(k); };
    functions.step = [this] {
      weight.mutable_grad().reset();
      at::Tensor y = at::mm(weight, weight);  // two packs
      y = y.tanh();                           // one
      if (fails) throw std::runtime_error("the step fails");
      testing::backward(y.sum());
    };
  }
};

TEST_F(WakingStep, WaitsAtEachPackAndLeavesNothingBehind) {
  functions.step();
  const Bytes before = hand_device().memory().requested;
  const auto waiting = measure_waiting_step(hand_device(), functions, 5, StepBudget::exactly(4));
  ASSERT_TRUE(waiting.ok()) << waiting.error().text();
  EXPECT_EQ(waiting->waits, 3);
  EXPECT_GT(waiting->worked_ns, 0);
  EXPECT_EQ(batches, (std::vector<std::int64_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(executor::driver(), nullptr);
  EXPECT_EQ(hand_device().memory().requested, before);
}

TEST_F(WakingStep, ThatFailsLeavesNothingBehind) {
  fails = true;
  EXPECT_THROW(
      static_cast<void>(measure_waiting_step(hand_device(), functions, 0, StepBudget::exactly(4))),
      std::runtime_error);
  EXPECT_EQ(executor::driver(), nullptr);
  fails = false;
  EXPECT_TRUE(measure_waiting_step(hand_device(), functions, 0, StepBudget::exactly(1)).ok());
}

// Two packs 1000 of launches apart, with a hook of 10 and a copy of 90 between them.
Trace two_packs(bool on_gpu) {
  testing::MicroTrace t;
  const auto a = t.alloc(100);
  const auto b = t.alloc(100);
  if (on_gpu) t.kernel(1);
  const auto s = t.run(10).pack(a);
  const auto r = t.run(1000).pack(b);
  t.run(10).backward();
  t.unpack(r);
  t.unpack(s);
  t.free(a);
  t.free(b);
  t.run(10);
  Trace trace = t.finish();
  trace.calibration.hook_ns = 10;
  trace.calibration.copy_issue_ns = 90;
  return trace;
}

TEST(WokenLaunch, ComparesTheTimeBetweenTheWaitsWithTheRecordedLaunches) {
  const Trace trace = two_packs(true);
  EXPECT_EQ(woken_launch_speed(trace, {2200, 2}), 500'000);
  EXPECT_EQ(woken_launch_speed(trace, {1'100'000, 2}), 10'000);  // no slower than this
  EXPECT_EQ(woken_launch_speed(trace, {900, 2}), kPpm);          // not faster
}

TEST(WokenLaunch, IsNotKnownOfAnotherStep) {
  EXPECT_EQ(woken_launch_speed(two_packs(true), {2200, 3}), kPpm);
  EXPECT_EQ(woken_launch_speed(two_packs(true), {0, 2}), kPpm);
  EXPECT_EQ(woken_launch_speed(two_packs(false), {2200, 2}), kPpm);
}

}  // namespace
}  // namespace stowage::profiler
