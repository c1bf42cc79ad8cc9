#include "profiler/torch/quiet_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "profiler/torch/stopwatch.h"

namespace stowage::profiler {
namespace {

using Times = std::vector<Nanoseconds>;

// Feeds the times as long as more are wanted; repeats the last one.
QuietSteps run(const Times& times, const StepBudget& budget, Nanoseconds patience,
               std::size_t* steps = nullptr, Nanoseconds aim = 0) {
  QuietSteps quiet(budget, {.time_ns = patience, .aim_ns = aim});
  std::size_t done = 0;
  for (; quiet.wants_more(); ++done) quiet.add(times[std::min(done, times.size() - 1)]);
  if (steps != nullptr) *steps = done;
  return quiet;
}

TEST(QuietSteps, AreTheMedianWhereNothingDisturbs) {
  std::size_t steps = 0;
  const QuietSteps quiet =
      run({1004, 1000, 1001, 1003, 1002}, {2, 5, 1'000'000}, 1'000'000, &steps);
  EXPECT_EQ(steps, 5U);
  EXPECT_EQ(quiet.step_ns(), 1002);
  EXPECT_EQ(quiet.step(), 4U);
}

// A burst at the begin: the quiet steps behind it are waited for, and no longer.
TEST(QuietSteps, WaitUntilABurstIsOver) {
  std::size_t steps = 0;
  const Times times{1200, 1300, 1250, 1280, 1220, 1210, 1003, 1001, 1002, 1005, 1004, 1002};
  const QuietSteps quiet = run(times, {2, 5, 1'000'000}, 1'000'000, &steps);
  EXPECT_EQ(steps, 11U);
  EXPECT_EQ(quiet.step_ns(), 1003);
  const QuietSteps hasty = run(times, {2, 5, 1'000'000}, 0, &steps);
  EXPECT_EQ(steps, 5U);
  EXPECT_EQ(hasty.step_ns(), 1250);
}

// Two steps that agree are no quiet window when the budget has more of them.
TEST(QuietSteps, AreNotFoundInABurstsFirstTwo) {
  std::size_t steps = 0;
  const Times times{1215, 1216, 1199, 1153, 1108, 1003, 1001, 1002, 1005, 1004};
  EXPECT_EQ(run(times, {2, 5, 1'000'000}, 1'000'000, &steps).step_ns(), 1003);
  EXPECT_EQ(steps, 10U);
}

// A longer window is quiet later, and its median another one.
TEST(QuietSteps, AreAsManyAsTheWindowAsksFor) {
  const Times times{1100, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007};
  for (const auto& [window, steps, step_ns] :
       {std::tuple{3U, 4U, 1001}, std::tuple{5U, 6U, 1002}, std::tuple{8U, 9U, 1004}}) {
    QuietSteps quiet({2, 3, 1'000'000}, {.time_ns = 1'000'000}, window);
    std::size_t done = 0;
    for (; quiet.wants_more(); ++done) quiet.add(times[std::min(done, times.size() - 1)]);
    EXPECT_EQ(done, steps) << window;
    EXPECT_EQ(quiet.step_ns(), step_ns) << window;
  }
}

// A host that is evenly slow: only who knows what the step takes without that can tell.
TEST(QuietSteps, AreNotThoseOfAnEvenBurstWhenTheAimIsKnown) {
  std::size_t steps = 0;
  const Times times{1101, 1102, 1103, 1102, 1101, 1100, 1015, 1016, 1017, 1016, 1015};
  EXPECT_EQ(run(times, {2, 5, 1'000'000}, 1'000'000, &steps).step_ns(), 1102);
  EXPECT_EQ(steps, 5U);
  EXPECT_EQ(run(times, {2, 5, 1'000'000}, 1'000'000, &steps, 1020).step_ns(), 1016);
  EXPECT_EQ(steps, 11U);
  // What recording costs may be more than that: then the patience ends it, with the best there was.
  EXPECT_EQ(run(times, {2, 5, 1'000'000}, 50'000, &steps, 1010).step_ns(), 1015);
  EXPECT_EQ(steps, 48U);
}

TEST(QuietSteps, APatienceEnds) {
  Times restless;
  for (int i = 0; i < 1000; ++i) restless.push_back(1000 + 100 * (i % 2));
  std::size_t steps = 0;
  static_cast<void>(run(restless, {2, 5, 1'000'000}, 1'000'000, &steps));
  EXPECT_EQ(steps, 400U);  // 80 times as many
  static_cast<void>(run(restless, {2, 5, 1'000'000}, 20'000, &steps));
  EXPECT_EQ(steps, 19U);  // 19 take 19,900
}

// Fewer steps than a window: their median, and never "quiet" by being few.
TEST(QuietSteps, FewLongStepsAreTheirMedian) {
  std::size_t steps = 0;
  const QuietSteps quiet = run({3000, 1000, 2000}, {2, 5, 6000}, 6000, &steps);
  EXPECT_EQ(steps, 3U);
  EXPECT_EQ(quiet.step_ns(), 2000);
  EXPECT_EQ(run({3000, 1000}, StepBudget::exactly(1), 0).step_ns(), 3000);
  static_cast<void>(run({3000, 3010, 1}, {2, 5, 6000}, 90'000, &steps));
  EXPECT_EQ(steps, 2U);
}

// Against all windows, one by one; and what was dropped on the way is never asked for.
TEST(QuietSteps, AreTheSmallestMedianOfAllWindows) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int count = std::uniform_int_distribution<int>(1, 30)(random);
    Times times;
    for (int i = 0; i < count; ++i) {
      times.push_back(std::uniform_int_distribution<int>(1000, 1100)(random));
    }
    QuietSteps quiet(StepBudget::exactly(count), {});
    std::vector<bool> dropped;
    for (const Nanoseconds time : times) {
      quiet.add(time);
      dropped.push_back(false);
      for (std::size_t i = 0; i < dropped.size(); ++i) {
        if (!quiet.may_be_chosen(i)) dropped[i] = true;
      }
      ASSERT_FALSE(dropped[quiet.step()]);
    }
    ASSERT_FALSE(quiet.wants_more());
    const std::size_t width = std::min(QuietSteps::kWindow, times.size());
    Nanoseconds smallest = 1'000'000;
    for (std::size_t begin = 0; begin + width <= times.size(); ++begin) {
      Times window(times.begin() + static_cast<std::ptrdiff_t>(begin),
                   times.begin() + static_cast<std::ptrdiff_t>(begin + width));
      std::sort(window.begin(), window.end());
      smallest = std::min(smallest, window[width / 2]);
    }
    EXPECT_EQ(quiet.step_ns(), smallest);
  }
}

// Of all steps, not of the quiet window alone: 100 x 5, then 110 x 5.
TEST(QuietSteps, SpreadIsTheDistanceOfTheQuartilesOfAllSteps) {
  QuietSteps quiet(StepBudget{1, 10, 1'000'000'000}, {});
  EXPECT_EQ(spread_of({}), 0);
  EXPECT_EQ(spread_of({100, 100, 200}), 0);
  EXPECT_EQ(spread_of({200, 100, 100, 100}), 1'000'000);
  EXPECT_EQ(spread_of({1, 1, 100, 100}), 990'000);
  EXPECT_EQ(spread_of({1, 1, 1, 100}), 1'000'000);
  for (int i = 0; i < 5; ++i) quiet.add(100);
  for (int i = 0; i < 5; ++i) quiet.add(110);
  EXPECT_EQ(quiet.step_ns(), 100);
  EXPECT_EQ(quiet.spread(), 10 * 1'000'000 / 110);
}

}  // namespace
}  // namespace stowage::profiler
