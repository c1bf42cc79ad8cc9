#include "cli/torch/measured_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/torch/results_json.h"
#include "simulator/machine/step_interval.h"

namespace stowage::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MeasuredText, OfPlannedMemorySaysWhatTheCachingAllocatorWouldReserve) {
  MeasuredRun run;
  run.peak_active = 100;
  run.peak_reserved = 2097152;
  simulator::Predicted predicted;
  predicted.peak_active = 100;
  predicted.peak_reserved = 2097152;
  const std::string would = "PyTorch's caching allocator would reserve 4.19 MB (4,194,304 bytes)";
  EXPECT_THAT(counters_text(run, predicted, 4194304), Not(HasSubstr(would)))
      << "the step ran in the caching allocator's memory";
  run.memory.emplace();
  EXPECT_THAT(counters_text(run, predicted, 4194304), HasSubstr(would));
  EXPECT_THAT(counters_text(run, predicted, -1), Not(HasSubstr("would reserve")));
  run.peak_reserved = -1;  // a device without such counters
  EXPECT_EQ(counters_text(run, predicted, 4194304), "");
}

TEST(MeasuredText, SaysWhetherATimeIsWithinItsInterval) {
  EXPECT_EQ(ratio_text(102, 0, 0), "");
  EXPECT_EQ(ratio_text(102, 100, 0), " (ratio 1.020)");
  EXPECT_EQ(ratio_text(102, 100, 2), " (ratio 1.020, within ±2.0 %)");
  EXPECT_EQ(ratio_text(98, 100, 2), " (ratio 0.980, within ±2.0 %)");
  EXPECT_EQ(ratio_text(97, 100, 2), " (ratio 0.970, outside of ±2.0 %)");
}

// Of the recording, the reference and the planned steps the widest spread, twice; 2 % at least.
TEST(MeasuredText, AnIntervalIsOfTheWidestSpread) {
  Trace trace;
  trace.env.device = "cuda";
  Verification v;
  v.predicted.step = 1'000'000;
  EXPECT_EQ(simulator::step_interval(trace, v.predicted.step, v.spread()), 20'000);
  v.planned.spread = 15'000;
  EXPECT_EQ(simulator::step_interval(trace, v.predicted.step, v.spread()), 30'000);
  v.reference.spread = 20'000;
  EXPECT_EQ(simulator::step_interval(trace, v.predicted.step, v.spread()), 40'000);
  trace.overhead.clean_spread = 25'000;
  EXPECT_EQ(simulator::step_interval(trace, v.predicted.step, v.spread()), 50'000);
  trace.env.device = "cpu";
  EXPECT_EQ(simulator::step_interval(trace, v.predicted.step, v.spread()), 0);
}

}  // namespace
}  // namespace stowage::cli
