// record_passes(): which passes run, in which order and with which options. No step runs here:
// where the passes would end in this process, the recording is ended.
#include "profiler/torch/recording.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stowage {
namespace {

using profiler::CleanResults;
using profiler::PassOptions;
using profiler::RecordedStep;
using profiler::RecordingPasses;
using profiler::TimingPass;
using Lines = std::vector<std::string>;

// Writes down what runs; every clean pass is 100 ns faster than the one before it.
struct Course {
  Lines lines;
  Lines warnings;
  CleanResults clean;
  Nanoseconds timing_step_ns = 0;
  RecordingPasses passes;

  explicit Course(Nanoseconds clean_step_ns) {
    clean.on_gpu = true;
    clean.clean.step_ns = clean_step_ns;
    passes.clean = [this](const PassOptions&) -> Result<CleanResults> {
      lines.emplace_back("clean");
      const CleanResults results = clean;
      clean.clean.step_ns -= 100;
      return results;
    };
    passes.timing = [this](const PassOptions& options) -> Result<TimingPass> {
      lines.push_back("timing behind " + std::to_string(options.clean_step_ns) +
                      (options.everything_offloaded ? ", offloaded" : ""));
      TimingPass timing;
      timing.step_ns = timing_step_ns;
      return timing;
    };
    passes.open = [this]() -> Result<RecordedStep> {
      lines.emplace_back("open");
      return Error{ErrorCode::condition, "enough", "", "", ""};
    };
    passes.clean_again = 2;
    passes.warn = [this](const std::string& line) { warnings.push_back(line); };
  }
  Course(const Course&) = delete;
  Course& operator=(const Course&) = delete;

  void run() {
    const auto trace = profiler::record_passes(passes, {});
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.error().message, "enough");
  }
};

TEST(Recording, TheGpusActivityIsRecordedBehindTheCleanSteps) {
  Course course(1000);
  course.timing_step_ns = 1010;
  course.run();
  EXPECT_EQ(course.lines, (Lines{"clean", "timing behind 1000", "open"}));
  EXPECT_TRUE(course.warnings.empty());
}

// Recorded steps are the slower ones: at 1000 ns and 0.5 % more, clean steps of 1200 and 1100 ns
// were disturbed, those of 1000 ns were not.
TEST(Recording, CleanStepsOfABusyHostRunAgain) {
  Course course(1200);
  course.timing_step_ns = 1000;
  course.run();
  EXPECT_EQ(course.lines, (Lines{"clean", "timing behind 1200", "clean", "clean", "open"}));

  Course still_busy(5000);
  still_busy.timing_step_ns = 1000;
  still_busy.run();
  EXPECT_EQ(still_busy.lines, (Lines{"clean", "timing behind 5000", "clean", "clean", "open"}));

  Course one_process(1200);
  one_process.timing_step_ns = 1000;
  one_process.passes.clean_again = 0;
  one_process.run();
  EXPECT_EQ(one_process.lines, (Lines{"clean", "timing behind 1200", "open"}));

  // The recording is good without a further clean pass that fails.
  Course fails_again(1200);
  fails_again.timing_step_ns = 1000;
  fails_again.passes.clean = [&, first = true](const PassOptions&) mutable -> Result<CleanResults> {
    fails_again.lines.emplace_back("clean");
    if (!std::exchange(first, false)) return Error{ErrorCode::environment, "no", "", "", ""};
    return fails_again.clean;
  };
  fails_again.run();
  EXPECT_EQ(fails_again.lines, (Lines{"clean", "timing behind 1200", "clean", "open"}));
}

TEST(Recording, OutOfMemoryOffloadsThePassesBehindIt) {
  Course course(0);
  course.clean.clean.out_of_memory = true;
  course.timing_step_ns = 1000;
  course.run();
  EXPECT_EQ(course.lines, (Lines{"clean", "timing behind 0, offloaded", "open"}));
  ASSERT_EQ(course.warnings.size(), 1U);
  EXPECT_NE(course.warnings[0].find("out of memory"), std::string::npos);
}

TEST(Recording, WithoutATimingPassAGpusTraceIsWarnedOf) {
  Course course(1000);
  course.passes.timing = nullptr;
  course.run();
  EXPECT_EQ(course.lines, (Lines{"clean", "open"}));
  ASSERT_EQ(course.warnings.size(), 1U);
  EXPECT_NE(course.warnings[0].find("no kernel times"), std::string::npos);

  Course on_cpu(1000);
  on_cpu.clean.on_gpu = false;
  on_cpu.run();
  EXPECT_EQ(on_cpu.lines, (Lines{"clean", "open"}));
  EXPECT_TRUE(on_cpu.warnings.empty());
}

TEST(Recording, AnErrorOfAPassIsTheRecordings) {
  Course course(1000);
  course.passes.timing = [](const PassOptions&) -> Result<TimingPass> {
    return Error{ErrorCode::condition, "enough", "", "", ""};
  };
  course.run();
  EXPECT_EQ(course.lines, (Lines{"clean"}));
}

}  // namespace
}  // namespace stowage
