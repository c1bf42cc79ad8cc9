#include "profiler/assembly/attribution.h"

#include <gtest/gtest.h>

#include "tests/profiler/fabricated_recording.h"
#include "tests/profiler/fabricated_timing.h"

namespace stowage::profiler {
namespace {

using testing::FabricatedRecording;
using testing::FabricatedTiming;

// Rows of events; ops 0 (outer), 1 (nested in it), 2.
//   0 step_begin, 1 op 0, 2 op 1, 3 end of op 0, 4 op 2, 5 end of op 2, 6 step_end
RawRecording three_ops() {
  FabricatedRecording r;
  r.begin_op("outer");
  r.begin_op("nested");
  r.end_op();
  r.end_op();
  r.begin_op("last");
  r.end_op();
  return r.finish(100'000);
}

class Attributed : public ::testing::Test {
 protected:
  Attribution attributed() {
    Result<Attribution> result = attribute(t.timing);
    EXPECT_TRUE(result.ok()) << result.error().text();
    return std::move(result).value();
  }
  static std::int64_t at(std::int32_t event, Nanoseconds behind = 0) {
    return FabricatedTiming::at(event, behind);
  }

  RawRecording recording = three_ops();
  FabricatedTiming t{recording.structure};
};

TEST_F(Attributed, ByTimeToTheIntervalOfTheLaunch) {
  t.kernel(at(0, 1), at(0, 3000), 100);     // ahead of any op
  t.kernel(at(1, 5000), at(1, 9000), 200);  // in the outer op
  t.kernel(at(2, 0), at(5, 0), 300);        // exactly at an event, runs much later
  t.kernel(at(5, 9999), at(6, 5000), 400);  // after the last op; runs past the end
  const Attribution a = attributed();
  ASSERT_EQ(a.activities.size(), 4U);
  const std::vector<std::pair<std::int32_t, std::int32_t>> expected = {
      {0, -1}, {1, 0}, {2, 1}, {5, -1}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(a.activities[i].event, expected[i].first) << i;
    EXPECT_EQ(a.activities[i].op, expected[i].second) << i;
  }
  EXPECT_EQ(a.attributed_ns, 500);
  EXPECT_EQ(a.unattributed_count, 2);  // of the step, but of no op
  EXPECT_EQ(a.unattributed_ns, 500);
  EXPECT_EQ(a.disagreements, 0);
}

// Kernels of the step that no op launched: more than 0.5 % of the time break the recording, copies
// and memsets (the loss on its way to the host) do not.
TEST_F(Attributed, KernelsOutsideOfOpsBreakTheLimit) {
  t.kernel(at(1, 100), at(1, 5000), 99'500);
  t.kernel(at(5, 100), at(5, 200), 7000);
  t.timing.activities.activities.back().kind = GpuKind::memcpy;
  t.memset(at(5, 300), at(5, 400), 3000);
  t.kernel(at(0, 100), at(0, 200), 550);  // 0.5 % of 110 050 ns
  const Attribution within = attributed();
  EXPECT_EQ(within.activities.size(), 4U);
  EXPECT_EQ(within.attributed_ns, 109'500);
  EXPECT_EQ(within.unattributed_ns, 550);
  EXPECT_TRUE(check_quality(t.timing.activities, within).ok());
  t.kernel(at(5, 500), at(5, 600), 1);
  const Attribution beyond = attributed();
  EXPECT_EQ(beyond.activities.size(), 5U);
  EXPECT_EQ(beyond.unattributed_count, 2);
  const Status status = check_quality(t.timing.activities, beyond);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("551 of 110051 ns of GPU time (2 activities)"),
            std::string::npos)
      << status.error().message;
  // An id decides: the launch was an op's.
  t.timing.activities.externals.push_back({5, 2});
  EXPECT_EQ(attributed().unattributed_ns, 550);
}

TEST_F(Attributed, TheExternalIdDecidesTheOp) {
  t.kernel(at(2, 5000), at(2, 9000), 100, 0);  // the nested op is over, only the id knows
  t.kernel(at(4, -10), at(4, 5000), 100, 2);   // by time still ahead of op 2
  const Attribution a = attributed();
  ASSERT_EQ(a.activities.size(), 2U);
  EXPECT_EQ(a.activities[0].op, 0);
  EXPECT_EQ(a.activities[0].event, 2);
  EXPECT_EQ(a.activities[1].op, 2);
  EXPECT_EQ(a.activities[1].event, 4);  // moved into the op
  EXPECT_EQ(a.disagreements, 1);        // an op that encloses the other is no disagreement
  const Status quality = check_quality(t.timing.activities, a);
  ASSERT_FALSE(quality.ok());
  EXPECT_NE(quality.error().message.find("1 of 2 launches"), std::string::npos);
}

TEST_F(Attributed, OtherStepsOtherThreadsAndOurOwnCopiesAreLeftOut) {
  t.kernel(at(0, -500'000), at(0, -400'000), 100);      // ahead of the step
  t.kernel(at(6, 10), at(6, 5000), 100);                // behind it
  t.kernel(at(1, 100), at(1, 5000), 100, kExecutorId);  // inside a hook, by its id
  t.timing.pass.hook_spans.push_back({at(2, 1000), at(2, 3000)});
  t.kernel(at(2, 2000), at(2, 5000), 100);                           // .. and by time
  const std::int64_t other = t.kernel(at(4, 100), at(4, 5000), 70);  // another thread
  t.timing.activities.launches.back().thread = 78;
  const std::int64_t lost = t.kernel(at(4, 200), at(4, 6000), 30);  // no launch record
  t.timing.activities.launches.pop_back();
  EXPECT_NE(other, lost);
  const Attribution a = attributed();
  EXPECT_TRUE(a.activities.empty());
  EXPECT_EQ(a.unattributed_count, 2);
  EXPECT_EQ(a.unattributed_ns, 100);
}

TEST_F(Attributed, OfCallsInsideOneAnotherTheOuterOneLaunches) {
  t.kernel(at(1, 100), at(2, 0), 100);
  RawLaunch driver = t.timing.activities.launches[0];
  t.timing.activities.launches[0].start_ns -= 200;  // at(0, 9900): the runtime call that made it
  driver.end_ns -= 500;
  t.timing.activities.launches.push_back(driver);
  const Attribution a = attributed();
  ASSERT_EQ(a.activities.size(), 1U);
  EXPECT_EQ(a.activities[0].launch, 0U);
  EXPECT_EQ(a.activities[0].event, 0);
}

TEST_F(Attributed, AKernelAheadOfItsLaunchIsClampedAndCounted) {
  t.kernel(at(1, 5000), at(1, 4000), 3000);
  t.kernel(at(4, 5000), at(4, 0), 9000);
  const Attribution a = attributed();
  EXPECT_EQ(a.causality_violations, 2);
  EXPECT_EQ(a.largest_clamp, 5000);
  EXPECT_EQ(a.activities[0].start_ns, at(1, 5000));
  t.kernel(at(4, 9000), at(4, 3999), 1);
  const Result<Attribution> refused = attribute(t.timing);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::environment);
  EXPECT_NE(refused.error().message.find("a kernel 5001 ns before it was launched"),
            std::string::npos);
}

TEST_F(Attributed, WaitsInsideTheStepAndTheRecordersOwn) {
  t.sync(at(0, -3000), at(0, -1000));  // ahead of the step
  t.sync(at(2, 1000), at(2, 6000));
  t.sync(at(2, 2000), at(2, 3000));  // inside the one before
  t.sync(at(5, 100), at(5, 9000));   // nothing but the step's end follows
  t.kernel(at(4, 1000), at(4, 4000), 5000);
  RawActivity& copy = t.timing.activities.activities.back();
  copy.kind = GpuKind::memcpy;
  copy.destination = MemoryKind::pageable;
  t.timing.activities.launches.back().end_ns = at(4, 9500);  // returned when the copy was done
  const Attribution a = attributed();
  ASSERT_EQ(a.syncs.size(), 2U);
  EXPECT_EQ(a.syncs[0].event, 2);
  EXPECT_EQ(a.syncs[0].end_ns - a.syncs[0].start_ns, 5000);
  EXPECT_EQ(a.syncs[1].event, 4);
  EXPECT_EQ(a.syncs[1].end_ns - a.syncs[1].start_ns, 8500);
  ASSERT_EQ(a.own_waits.size(), 1U);
  EXPECT_EQ(a.own_waits[0].begin_ns, at(5, 100));
}

TEST(Quality, ItsLimitsAreWords) {
  RawActivities records;
  Attribution good;
  good.attributed_ns = 99'500;
  good.unattributed_ns = 500;
  EXPECT_TRUE(check_quality(records, good).ok());  // 0.5 % is allowed
  Attribution lost = good;
  lost.unattributed_ns = 501;
  lost.unattributed_count = 3;
  const Status status = check_quality(records, lost);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::environment);
  EXPECT_NE(status.error().message.find("501 of 100001 ns of GPU time (3 activities)"),
            std::string::npos);
  records.dropped_records = 4;
  EXPECT_NE(check_quality(records, good).error().message.find("lost 4 activity records"),
            std::string::npos);
  records.dropped_records = 0;
  records.zero_timestamps = 2;
  EXPECT_NE(check_quality(records, good).error().message.find("2 activity records"),
            std::string::npos);
}

TEST(Sentinels, BothMustHaveRun) {
  RawActivities records;
  const RawSpan first{100, 200};
  const RawSpan last{500, 600};
  RawActivity early;
  early.start_ns = 150;
  early.end_ns = 160;
  RawActivity late;
  late.start_ns = 590;
  late.end_ns = 610;  // the clocks are not that exact
  records.activities = {early, late};
  EXPECT_TRUE(check_sentinels(records, first, last).ok());
  records.activities = {early};
  EXPECT_NE(check_sentinels(records, first, last).error().message.find("stopped (1 activities"),
            std::string::npos);
  records.activities = {late};
  EXPECT_NE(check_sentinels(records, first, last).error().message.find("began"), std::string::npos);
}

}  // namespace
}  // namespace stowage::profiler
