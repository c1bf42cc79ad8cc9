#include "profiler/torch/step_budget.h"

#include <gtest/gtest.h>

#include "profiler/torch/step_hooks.h"

namespace stowage::profiler {
namespace {

// How many steps of `step` each a budget runs.
std::int64_t steps_run(const StepBudget& budget, Nanoseconds step) {
  std::int64_t done = 0;
  for (; budget.wants_more(done, done * step); ++done) {
  }
  return done;
}

// 10 s: ten steps of a second fit, three of three; five of 2.1 s would be 10.5.
TEST(StepBudget, RunsAsManyAsFit) {
  const StepBudget budget{2, 10, 10'000};
  EXPECT_EQ(steps_run(budget, 0), 10);
  EXPECT_EQ(steps_run(budget, 1), 10);
  EXPECT_EQ(steps_run(budget, 1000), 10);
  EXPECT_EQ(steps_run(budget, 1001), 9);
  EXPECT_EQ(steps_run(budget, 2000), 5);
  EXPECT_EQ(steps_run(budget, 2100), 4);
  EXPECT_EQ(steps_run(budget, 3000), 3);
}

TEST(StepBudget, RunsTheLeastWhateverTheyTake) {
  EXPECT_EQ(steps_run({2, 10, 10'000}, 8000), 2);
  EXPECT_EQ(steps_run({2, 10, 10'000}, 1'000'000), 2);
  EXPECT_EQ(steps_run({1, 10, 10'000}, 10'000), 1);
}

// After one long step and three short ones, 9 of 10 are spent; their mean is more than what is
// left.
TEST(StepBudget, ExpectsTheMean) {
  const StepBudget budget{1, 10, 10'000};
  EXPECT_TRUE(budget.wants_more(4, 8000));
  EXPECT_FALSE(budget.wants_more(4, 8004));
}

TEST(StepBudget, AFixedNumber) {
  EXPECT_EQ(steps_run(StepBudget::exactly(3), 1'000'000), 3);
  EXPECT_EQ(steps_run(StepBudget::exactly(3), 0), 3);
  EXPECT_EQ(steps_run(StepBudget::exactly(0), 1), 0);
}

TEST(StepBudget, AskedForFewerThanTheLeast) {
  EXPECT_EQ(steps_run(StepBudget::up_to(2, 4, 10'000), 1), 2);
  EXPECT_EQ(steps_run(StepBudget::up_to(5, 4, 10'000), 1), 5);
  EXPECT_EQ(steps_run(StepBudget::up_to(5, 4, 10'000), 9000), 4);
}

// 100 launches of 4 us and 50 hooks of 2 us are 500 us: a twentieth of 10 ms.
TEST(LaunchesFarAhead, ByTheTracesOwnCosts) {
  Trace trace;
  trace.gpu.kind.resize(100);
  trace.saved.site.resize(30);
  trace.unpacks.saved.resize(20);
  trace.calibration.launch_ns = 4000;
  trace.calibration.hook_ns = 2000;
  trace.overhead.clean.step_ns = 10'000'000;
  ASSERT_EQ(trace.saved.size() + trace.unpacks.size(), 50U);
  EXPECT_TRUE(launches_far_ahead(trace));
  trace.overhead.clean.step_ns -= 1;
  EXPECT_FALSE(launches_far_ahead(trace));
  trace.overhead.clean.step_ns = 1'000'000'000;
  trace.gpu = {};
  EXPECT_FALSE(launches_far_ahead(trace));
}

}  // namespace
}  // namespace stowage::profiler
