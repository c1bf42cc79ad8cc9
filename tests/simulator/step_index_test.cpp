#include "simulator/step/step_index.h"

#include <gtest/gtest.h>

#include "simulator/lowering/point_events.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

//   0 step_begin  1 layer_forward_begin  2 op_begin  3 alloc (100)  4 pack  5 op_end (time 70)
//   6 layer_forward_end  7 backward_begin  8 unpack (time 100)  9 free  10 step_end
Trace small() {
  MicroTrace t;
  t.existing(40);
  t.begin_layer("L");
  t.begin_op();
  const auto a = t.alloc(100);
  const auto s = t.pack(a);
  t.write(a);
  t.run(70).end_op();
  t.end_layer("L");
  t.backward();
  t.run(30).unpack(s);
  t.free(a);
  return t.finish();
}

TEST(StepIndex, Anchors) {
  const Trace trace = small();
  const StepIndex index(trace);
  EXPECT_EQ(index.anchor_at(EventId(4), Side::after).kind, AnchorKind::pack);
  EXPECT_EQ(index.anchor_at(EventId(8), Side::before).ordinal, 0);
  EXPECT_FALSE(index.is_anchor(EventId(3)));
  EXPECT_FALSE(index.is_anchor(EventId(7)));
  EXPECT_EQ(index.next_anchor(EventId(2)), EventId(4));
  EXPECT_EQ(index.next_anchor(EventId(4)), EventId(4));
  EXPECT_EQ(index.next_anchor(EventId(9)), EventId(10));
  EXPECT_EQ(index.previous_anchor(EventId(3)), EventId(1));
  EXPECT_EQ(index.previous_anchor(EventId(7)), EventId(6));
  EXPECT_EQ(index.first_unpack_event(), EventId(8));
}

// An accumulated gradient is an anchor for who names it, and no place that a lowering chooses.
TEST(StepIndex, AccumulatedGradientsAreAnchorsThatNobodyChooses) {
  MicroTrace t;
  const auto w = t.existing(40);
  t.begin_layer("L");
  t.end_layer("L");
  t.backward();
  t.begin_layer_backward("L");
  t.accumulate(w);
  t.accumulate(w);
  t.end_layer_backward("L");
  const Trace trace = t.finish();
  const StepIndex index(trace);
  ASSERT_EQ(trace.events.kind[5], EventKind::gradient_accumulated);
  EXPECT_TRUE(index.is_anchor(EventId(5)));
  EXPECT_EQ(index.anchor_at(EventId(5), Side::after).kind, AnchorKind::gradient_accumulated);
  EXPECT_EQ(index.anchor_at(EventId(5), Side::after).ordinal, 0);
  EXPECT_EQ(index.anchor_at(EventId(6), Side::after).ordinal, 1);
  EXPECT_EQ(index.next_anchor(EventId(5)), EventId(7));
  EXPECT_EQ(index.previous_anchor(EventId(6)), EventId(4));
  for (const EventId anchor : index.anchors()) {
    EXPECT_NE(trace.events.kind[anchor.index()], EventKind::gradient_accumulated);
  }
}

TEST(StepIndex, BytesAndTimesOfACpuStep) {
  const Trace trace = small();
  const StepIndex index(trace);
  EXPECT_EQ(index.bytes_at_begin(), 40);
  EXPECT_EQ(index.resident_bytes(),
            (std::vector<Bytes>{40, 40, 40, 140, 140, 140, 140, 140, 140, 40, 40}));
  EXPECT_EQ(index.compute_ns(5), 70);
  EXPECT_EQ(index.compute_ns(8), 30);
  EXPECT_EQ(index.compute_until()[10], 100);
  EXPECT_FALSE(index.has_launch());
  EXPECT_EQ(index.resident_time(), trace.events.time);
  ASSERT_EQ(index.writes_of(StorageId(1)).size(), 1u);
  EXPECT_EQ(index.writes_of(StorageId(1)).front(), EventId(2));
}

// The launch thread reaches op_end of the first op at 10 and of the second at 30. Kernel 1 (100 ns)
// starts when it was launched, by 10, and ends at 110; kernel 2 (50 ns) follows: 160. The launch
// thread is through at 30, so the step ends when compute does.
TEST(StepIndex, TimesOfAStepWithALaunchThread) {
  MicroTrace t;
  t.begin_op();  // event 1, time 0
  t.run(5).kernel(100);
  t.run(5).end_op();  // event 2, time 10
  t.begin_op();       // event 3, time 10
  t.run(10).kernel(50);
  t.run(10).end_op();  // event 4, time 30
  const Trace trace = t.finish();
  const StepIndex index(trace);
  EXPECT_TRUE(index.has_launch());
  EXPECT_EQ(index.launch_ns(), (std::vector<Nanoseconds>{0, 0, 10, 0, 20, 0}));
  EXPECT_EQ(index.compute_until(), (std::vector<Nanoseconds>{0, 0, 100, 100, 150, 150}));
  EXPECT_EQ(index.compute_ns(2), 100);
  EXPECT_EQ(index.compute_ns(3), 0);
  EXPECT_EQ(index.resident_time(), (std::vector<Nanoseconds>{0, 0, 110, 110, 160, 160}));
}

TEST(PointEvents, LayersCalledTwiceAndOps) {
  MicroTrace t;
  for (int call = 0; call < 2; ++call) {
    t.begin_layer("L");  // events 1 and 6
    t.begin_op();        // 2, 7
    t.end_op();
    t.end_layer("L");  // 4, 8 and so on
    if (call == 0) t.alloc(4);
  }
  const Trace trace = t.finish();
  PointEvents points(trace);
  ProgramPoint p;
  p.layer = "L";
  EXPECT_EQ(points.find(p).value(), (std::vector<EventId>{EventId(1), EventId(6)}));
  p.where = ProgramPoint::Where::op;
  p.op = 1;
  EXPECT_EQ(points.find(p).value(), std::vector<EventId>{EventId(7)});
  p.op = 2;
  EXPECT_EQ(points.find(p).error().message,
            "program point fwd:L:2: no such event in the recorded step");
  p.phase = ProgramPoint::Phase::backward;
  p.where = ProgramPoint::Where::begin;
  EXPECT_FALSE(points.find(p).ok());
}

}  // namespace
}  // namespace stowage::simulator
