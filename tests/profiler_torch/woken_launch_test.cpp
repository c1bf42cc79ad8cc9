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
  const auto waiting = measure_waiting_steps(hand_device(), functions, 5, StepBudget::exactly(4));
  ASSERT_TRUE(waiting.ok()) << waiting.error().text();
  ASSERT_EQ(waiting->size(), 4u);
  for (const WaitingStep& step : *waiting) {
    EXPECT_EQ(step.waits, 3);
    ASSERT_EQ(step.worked_ns.size(), 2u);
    for (const Nanoseconds worked : step.worked_ns) EXPECT_GT(worked, 0);
  }
  EXPECT_EQ(batches, (std::vector<std::int64_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(executor::driver(), nullptr);
  EXPECT_EQ(hand_device().memory().requested, before);
}

TEST_F(WakingStep, ThatFailsLeavesNothingBehind) {
  fails = true;
  EXPECT_THROW(
      static_cast<void>(measure_waiting_steps(hand_device(), functions, 0, StepBudget::exactly(4))),
      std::runtime_error);
  EXPECT_EQ(executor::driver(), nullptr);
  fails = false;
  EXPECT_TRUE(measure_waiting_steps(hand_device(), functions, 0, StepBudget::exactly(1)).ok());
}

enum class Between : std::uint8_t { nothing, sync, backward };

// Three packs, 1000 and 500 of launches apart, and hooks of 100 each; between the last two the CPU
// waits for the device, or backward begins.
Trace three_packs(bool on_gpu, Between between = Between::nothing) {
  testing::MicroTrace t;
  const auto a = t.alloc(100);
  const auto b = t.alloc(100);
  const auto c = t.alloc(100);
  if (on_gpu) t.kernel(1);
  const auto p = t.run(10).pack(a);
  const auto q = t.run(1000).pack(b);
  if (between == Between::sync) t.sync(0);
  if (between == Between::backward) t.run(10).backward();
  const auto r = t.run(500).pack(c);
  if (between != Between::backward) t.run(10).backward();
  t.unpack(r);
  t.unpack(q);
  t.unpack(p);
  t.free(a);
  t.free(b);
  t.free(c);
  t.run(10);
  Trace trace = t.finish();
  trace.calibration.hook_ns = 100;
  return trace;
}

TEST(WokenLaunch, ComparesTheTimeBetweenWaitsWithTheRecordedLaunches) {
  const Trace trace = three_packs(true);
  EXPECT_EQ(woken_launch_speed(trace, {{3, {2200, 1200}}}), 500'000);
  EXPECT_EQ(woken_launch_speed(trace, {{3, {1'100'000, 600'000}}}), 10'000);  // no slower than this
  EXPECT_EQ(woken_launch_speed(trace, {{3, {900, 500}}}), kPpm);              // not faster
}

TEST(WokenLaunch, TakesTheFirstQuartileOfSeveralSteps) {
  const std::vector<WaitingStep> steps{
      {3, {9000, 9000}}, {3, {2200, 1200}}, {3, {1700, 0}}, {3, {9000, 9000}}, {3, {9000, 9000}}};
  EXPECT_EQ(woken_launch_speed(three_packs(true), steps), 500'000);
}

// What lies between the last two packs then says nothing: 1100 of 2200. In the second of two steps
// it would change which of them is the quartile.
TEST(WokenLaunch, LeavesOutWhereTheStepWaitsByItselfOrRunsBackward) {
  for (const Between between : {Between::sync, Between::backward}) {
    const Trace trace = three_packs(true, between);
    EXPECT_EQ(woken_launch_speed(trace, {{3, {2200, 5'000'000}}}), 500'000);
    EXPECT_EQ(woken_launch_speed(trace, {{3, {4400, 1}}, {3, {2200, 5'000'000}}}), 500'000);
  }
}

TEST(WokenLaunch, IsNotKnownOfAnotherStep) {
  EXPECT_EQ(woken_launch_speed(three_packs(true), {{4, {2200, 1200, 10}}}), kPpm);
  EXPECT_EQ(woken_launch_speed(three_packs(true), {{3, {0, 0}}}), kPpm);
  EXPECT_EQ(woken_launch_speed(three_packs(true), {WaitingStep{}}), kPpm);
  EXPECT_EQ(woken_launch_speed(three_packs(true), {}), kPpm);
  EXPECT_EQ(woken_launch_speed(three_packs(false), {{3, {2200, 1200}}}), kPpm);
}

}  // namespace
}  // namespace stowage::profiler
