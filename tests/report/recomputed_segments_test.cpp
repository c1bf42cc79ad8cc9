// report/recomputed_segments.h on a step by hand.
#include "report/recomputed_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "report/moment.h"
#include "report/words.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/unroll.h"
#include "tests/support/micro_trace.h"

namespace stowage::report_tests {
namespace {

using simulator::Structure;

// In layer "a": y (200) is the silu of x (100), z (400) is y times y; each is saved by the op that
// reads it. In backward z is asked for first.
Trace two_ops() {
  testing::MicroTrace t;
  t.begin_layer("a");
  t.begin_op("aten::linear");
  const StorageId x = t.alloc(100);
  t.end_op();
  t.begin_op("aten::silu");
  t.read(x);
  const SavedId saved_x = t.pack(x);
  const StorageId y = t.run(20).alloc(200);
  t.run(5).end_op();
  t.let_go(x);
  t.begin_op("aten::mul");
  t.read(y);
  const SavedId saved_y = t.pack(y);
  const StorageId z = t.run(30).alloc(400);
  t.end_op();
  t.let_go(y);
  t.begin_op("aten::linear");
  t.read(z);
  const SavedId saved_z = t.pack(z);
  t.end_op();
  t.let_go(z);
  t.end_layer("a");
  t.backward();
  for (const auto& [saved, storage] : {std::pair{saved_z, z}, {saved_y, y}, {saved_x, x}}) {
    t.drop(t.unpack(saved));
    t.run(10);
    t.free(storage);
  }
  return t.finish();
}

// `trace` outlives it.
Result<simulator::Step> made_again_by_ops(const Trace& trace) {
  Structure structure;
  structure.ops = {"a#1", "a#2"};
  return simulator::unroll(trace, structure);
}

TEST(RecomputedSegments, OfOpsAreThoseOfTheirLayer) {
  const Trace trace = two_ops();
  const auto step = made_again_by_ops(trace);
  ASSERT_TRUE(step.ok()) << step.error().text();
  const auto segments = report::recomputed_segments(*step);
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments.front().name, "a#2");
  EXPECT_EQ(segments.front().layer, "a");
  EXPECT_TRUE(segments.front().by_ops);
  EXPECT_EQ(segments.front().freed, 600);
  EXPECT_EQ(segments.front().time, 55);  // 20, 5 and 30 again
  EXPECT_EQ(segments.front().freed_at_peak, 0);
}

// y is given up first, then z; both are gone until the run begins.
// What runs again has numbers of its own; the recording's are those that a reader can look up.
TEST(Moments, NameTheRecordedOp) {
  const Trace trace = two_ops();
  const auto step = made_again_by_ops(trace);
  ASSERT_TRUE(step.ok()) << step.error().text();
  const Trace& rows = step->trace();
  int again = 0;
  for (std::size_t e = 0; e < rows.events.size(); ++e) {
    const report::Moment moment = report::moment_at(*step, EventId(e));
    if (!moment.op.valid() || !moment.recorded_op.valid()) continue;
    ASSERT_LT(moment.recorded_op.index(), trace.ops.size());
    EXPECT_EQ(moment.op_name, trace.string(trace.ops.name[moment.recorded_op.index()]));
    EXPECT_THAT(report::place(moment),
                ::testing::HasSubstr("(op " + std::to_string(moment.recorded_op.value) + ")"));
    again += moment.op.value > moment.recorded_op.value;
  }
  EXPECT_GT(again, 0);
}

TEST(RecomputedSegments, WhatIsGoneAtThePeak) {
  const Trace trace = two_ops();
  const auto step = made_again_by_ops(trace);
  ASSERT_TRUE(step.ok()) << step.error().text();
  const Trace& rows = step->trace();
  const auto gone_at = [&](EventId event) {
    return report::recomputed_segments(*step, event).front().freed_at_peak;
  };
  const simulator::SegmentRows& segment = step->segments().front();
  const auto freed_at = [&](std::size_t i) {
    return rows.storages.free_event[rows.saved.storage[segment.saved[i].index()].index()];
  };
  const EventId y = freed_at(0);
  const EventId z = freed_at(1);
  ASSERT_LT(y, z);
  EXPECT_EQ(gone_at(EventId(y.value - 1)), 0);
  EXPECT_EQ(gone_at(y), 200);
  EXPECT_EQ(gone_at(z), 600);
  EXPECT_EQ(gone_at(EventId(segment.run_begin.value - 1)), 600);
  EXPECT_EQ(gone_at(segment.run_begin), 0);
}

TEST(RecomputedSegments, AreSummedByLayer) {
  const auto layers = report::recomputed_layers({{"b", false, 70, 7, "b", 70, EventId(3)},
                                                 {"a#2", true, 600, 55, "a", 200, EventId(1)},
                                                 {"a#5", true, 30, 3, "a", 0, EventId(2)},
                                                 {"a", false, 1, 2, "a", 1, EventId(4)}});
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].layer, "a");
  EXPECT_TRUE(layers[0].by_ops);
  EXPECT_EQ(layers[0].freed_at_peak, 200);
  EXPECT_EQ(layers[0].freed, 630);
  EXPECT_EQ(layers[0].time, 58);
  EXPECT_EQ(layers[1].layer, "b");
  EXPECT_FALSE(layers[2].by_ops);
}

}  // namespace
}  // namespace stowage::report_tests
