#include "profiler/torch/step_course.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stowage::profiler {
namespace {

// One letter a step: "w" neither steady nor measured, "t" timed, "s" stalls alone, "b" both.
std::string course(bool on_gpu, const StepCourse::Options& options,
                   const std::vector<Nanoseconds>& times, Nanoseconds* step_ns = nullptr) {
  StepCourse steps(on_gpu, options);
  std::string letters;
  for (std::size_t k = 0; steps.wants_more(); ++k) {
    const bool stalls = steps.measures_stalls();
    const bool warm = k < std::size_t{StepCourse::kSteadyFrom};
    letters += stalls ? (on_gpu && options.steps >= 7 ? 's' : 'b') : (warm ? 'w' : 't');
    steps.add(times[std::min(k, times.size() - 1)]);
  }
  if (step_ns != nullptr) *step_ns = steps.step_ns();
  return letters;
}

TEST(StepCourse, HasAsManyStepsAsAskedFor) {
  for (const bool on_gpu : {false, true}) {
    for (std::int64_t steps = 1; steps < 30; ++steps) {
      EXPECT_EQ(course(on_gpu, {.steps = steps}, {1000}).size(), static_cast<std::size_t>(steps));
    }
  }
}

TEST(StepCourse, MeasuresStallsInTheLastFewOnAGpu) {
  EXPECT_EQ(course(false, {.steps = 12}, {1000}), std::string(12, 'b'));
  EXPECT_EQ(course(true, {.steps = 6}, {1000}), "bbbbbb");
  EXPECT_EQ(course(true, {.steps = 7}, {1000}), "wwtttts");
  EXPECT_EQ(course(true, {.steps = 15}, {1000}), "wwttttttttttsss");
}

// Steps that measure stalls are slower, warm-up ones too; neither counts.
TEST(StepCourse, TakesTheTimeOfTheOthers) {
  Nanoseconds step_ns = 0;
  EXPECT_EQ(course(true, {.steps = 7}, {9000, 8000, 1003, 1001, 1002, 1004, 7000}, &step_ns),
            "wwtttts");
  EXPECT_EQ(step_ns, 1003);
  EXPECT_EQ(course(false, {.steps = 5}, {9000, 8000, 1003, 1001, 1002}, &step_ns), "bbbbb");
  EXPECT_EQ(step_ns, 1002);
}

TEST(StepCourse, IsShorterWhereStepsAreLong) {
  EXPECT_EQ(course(true, {.steps = 15, .least_steps = 7, .steady_time = 3000}, {1000}),
            "wwtttttsss");
  EXPECT_EQ(course(false, {.steps = 15, .least_steps = 7, .steady_time = 3000}, {1000}),
            std::string(7, 'b'));
}

// Ten that agree come only after a burst; whoever has no patience gets the median of all.
TEST(StepCourse, WaitsForTenQuietStepsOnAGpu) {
  std::vector<Nanoseconds> times(2, 5000);
  for (int i = 0; i < 12; ++i) times.push_back(1200 + 20 * i);
  times.push_back(1000);
  Nanoseconds step_ns = 0;
  const std::string letters = course(true, {.steps = 15, .patience = 1'000'000}, times, &step_ns);
  EXPECT_EQ(letters, "ww" + std::string(22, 't') + "sss");
  EXPECT_EQ(step_ns, 1000);
  EXPECT_EQ(course(true, {.steps = 15}, times, &step_ns), "ww" + std::string(10, 't') + "sss");
  EXPECT_EQ(step_ns, 1300);
}

// Ten that agree on 3 % more than expected are no answer yet; on 2 % they are.
TEST(StepCourse, WaitsForStepsThatAreAsFastAsExpected) {
  std::vector<Nanoseconds> times(20, 1030);
  times.push_back(1020);
  Nanoseconds step_ns = 0;
  const StepCourse::Options options{.steps = 15, .patience = 1'000'000, .expected = 1000};
  EXPECT_EQ(course(true, options, times, &step_ns), "ww" + std::string(24, 't') + "sss");
  EXPECT_EQ(step_ns, 1020);
  EXPECT_EQ(course(true, {.steps = 15, .patience = 1'000'000, .expected = 1010}, times, &step_ns),
            "ww" + std::string(10, 't') + "sss");
  EXPECT_EQ(step_ns, 1030);
  // Not for ever: 30 steps of 1030 are more than 30000.
  EXPECT_EQ(course(true, {.steps = 15, .patience = 30'000, .expected = 1000}, {1030}).size(),
            2u + 29u + 3u);
}

}  // namespace
}  // namespace stowage::profiler
