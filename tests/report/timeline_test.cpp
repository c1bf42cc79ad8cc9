// Lanes of recorded and planned steps: by hand, and against the replay on random plans.
#include "report/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/report_case.h"

namespace stowage::report_tests {
namespace {

using report::Lane;
using report::Span;
using report::SpanKind;
using report::Timeline;
using ::testing::ElementsAre;

// Ops at 0..30 and 40..60 on the CPU; the inner op is no span of its own.
TEST(Timeline, ARecordedCpuStepHasItsOutermostOpsInCompute) {
  testing::MicroTrace t;
  t.begin_layer("a");
  t.begin_op("aten::linear");
  t.run(10).begin_op("aten::mm");
  t.run(20).end_op();
  t.end_op();
  t.end_layer("a");
  t.run(10).begin_op("aten::sum");
  t.run(20).end_op();
  const Trace trace = t.finish();
  const Timeline timeline = report::recorded_timeline(trace);
  EXPECT_FALSE(timeline.is_simulated);
  EXPECT_EQ(timeline.end, 60);
  EXPECT_TRUE(timeline.lane(Lane::launch).empty());
  const std::vector<Span>& compute = timeline.lane(Lane::compute);
  ASSERT_EQ(compute.size(), 2U);
  EXPECT_EQ(compute[0].begin, 0);
  EXPECT_EQ(compute[0].end, 30);
  EXPECT_EQ(report::label_of(trace, compute[0]), "aten::linear");
  EXPECT_EQ(trace.string(trace.layers.name[compute[0].layer.index()]), "a");
  EXPECT_EQ(compute[1].begin, 40);
  EXPECT_EQ(compute[1].end, 60);
  EXPECT_THAT(timeline.requested, ::testing::Each(0));
}

// With kernels the ops are the launch thread's, and copies go to the lane of their direction.
TEST(Timeline, ARecordedGpuStepHasItsKernelsInComputeAndItsCopiesInTheirLanes) {
  testing::MicroTrace t;
  t.begin_op("aten::mm");
  t.kernel(500);
  t.run(100).end_op();
  t.begin_op("aten::copy_");
  t.kernel(70);
  t.kernel(80);
  t.kernel(90);
  t.run(50).end_op();
  Trace trace = t.finish();
  const char* const names[] = {"gemm", "Memcpy HtoD (Pinned -> Device)",
                               "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoD"};
  for (std::size_t i = 0; i < 4; ++i) {
    trace.gpu.name[i] = StringId(trace.strings.size());
    trace.strings.emplace_back(names[i]);
    if (i > 0) trace.gpu.kind[i] = GpuKind::memcpy;
    trace.gpu.bytes[i] = i > 0 ? 64 : 0;
  }
  const Timeline timeline = report::recorded_timeline(trace);
  ASSERT_EQ(timeline.lane(Lane::launch).size(), 2U);
  ASSERT_EQ(timeline.lane(Lane::compute).size(), 2U);
  ASSERT_EQ(timeline.lane(Lane::h2d).size(), 1U);
  ASSERT_EQ(timeline.lane(Lane::d2h).size(), 1U);
  EXPECT_EQ(timeline.lane(Lane::h2d)[0].bytes, 64);
  EXPECT_EQ(report::label_of(trace, timeline.lane(Lane::compute)[0]), "gemm");
  EXPECT_EQ(timeline.end, 500);  // the kernel runs on behind the last event
}

// 100 B leave at 0 and are back on demand at 1000: the copy and the stall are 100 ns each.
TEST(Timeline, APlannedStepHasTransfersAndStallsWithWhatTheyAreAbout) {
  testing::MicroTrace t;
  t.begin_layer("a");
  const auto a = t.alloc(100);
  const auto s = t.pack(a);
  t.let_go(a);
  t.end_layer("a");
  t.run(1000).backward();
  t.begin_op("aten::mul");
  t.drop(t.unpack(s));
  t.free(a);
  t.run(50).end_op();
  simulator::Plan plan;
  plan.saved.push_back(offload("a#*"));
  plan.saved[0].reload.kind = simulator::ReloadPoint::Kind::unpack;
  const HandCase c(t.finish(), plan);
  const Timeline timeline = report::simulated_timeline(c.trace, c.schedule, c.result, c.detail);
  EXPECT_TRUE(timeline.is_simulated);
  EXPECT_EQ(timeline.end, 1150);
  ASSERT_EQ(timeline.lane(Lane::d2h).size(), 1U);
  const Span& out = timeline.lane(Lane::d2h)[0];
  EXPECT_EQ(out.kind, SpanKind::offload);
  EXPECT_EQ(out.begin, 0);
  EXPECT_EQ(out.end, 100);
  EXPECT_EQ(out.storage, a);
  EXPECT_EQ(report::label_of(c.trace, out), "offload of a#0");
  ASSERT_EQ(timeline.lane(Lane::h2d).size(), 1U);
  const Span& back = timeline.lane(Lane::h2d)[0];
  EXPECT_EQ(back.begin, 1000);
  EXPECT_EQ(back.end, 1100);
  EXPECT_EQ(report::label_of(c.trace, back), "reload of a#0");
  ASSERT_EQ(timeline.lane(Lane::stalls).size(), 1U);
  const Span& stall = timeline.lane(Lane::stalls)[0];
  EXPECT_EQ(stall.begin, 1000);
  EXPECT_EQ(stall.end, 1100);
  EXPECT_EQ(stall.bytes, 100);
  EXPECT_EQ(report::label_of(c.trace, stall), "waits for reload of a#0");
  // The op that waits lasts from 1000 to 1150.
  ASSERT_EQ(timeline.lane(Lane::compute).size(), 1U);
  EXPECT_EQ(timeline.lane(Lane::compute)[0].end, 1150);
}

TEST(Timeline, LanesAreInOrderAndSayWhatTheReplaySaysOnRandomPlans) {
  int launches = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    const Timeline timeline = report::simulated_timeline(c.trace, c.schedule, c.result, c.detail);
    Nanoseconds stall = 0;
    for (const Span& span : timeline.lane(Lane::stalls)) stall += span.end - span.begin;
    ASSERT_EQ(stall, c.result.stall_ns);
    Bytes out = 0;
    for (const Span& span : timeline.lane(Lane::d2h)) out += span.bytes;
    ASSERT_EQ(out, c.result.d2h_bytes);
    Bytes back = 0;
    for (const Span& span : timeline.lane(Lane::h2d)) back += span.bytes;
    ASSERT_EQ(back, c.result.h2d_bytes);
    ASSERT_EQ(timeline.lane(Lane::launch).empty(), c.trace.gpu.size() == 0);
    launches += !timeline.lane(Lane::launch).empty();
    for (const auto& lane : timeline.lanes) {
      for (std::size_t i = 0; i < lane.size(); ++i) {
        ASSERT_LE(lane[i].begin, lane[i].end);
        ASSERT_LE(lane[i].end, timeline.end);
        if (i > 0) {
          ASSERT_LE(lane[i - 1].begin, lane[i].begin);
        }
        ASSERT_FALSE(report::label_of(c.trace, lane[i]).empty());
      }
    }
    // Ops follow each other, on the stream and on the thread, which is never behind the stream.
    for (const Lane which : {Lane::compute, Lane::launch}) {
      const auto& lane = timeline.lane(which);
      for (std::size_t i = 1; i < lane.size(); ++i) ASSERT_LE(lane[i - 1].end, lane[i].begin);
    }
    for (std::size_t e = 0; e < c.detail.launch.size(); ++e) {
      ASSERT_LE(c.detail.launch[e], c.detail.time[e]) << "event " << e;
    }
  }
  EXPECT_GT(launches, 50);
}

}  // namespace
}  // namespace stowage::report_tests
