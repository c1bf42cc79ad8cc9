// A step without its update, on steps that are worked out by hand.
#include "simulator/step/update_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "simulator/step/kept_rows.h"
#include "simulator/step/unroll.h"
#include "tests/support/micro_trace.h"
#include "traces/fingerprint.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MicroTrace;

EventId nth(std::size_t number) {
  return EventId(number);
}

Structure without_update() {
  Structure structure;
  structure.update = false;
  return structure;
}

// A layer L with weights v and w, an activation x that it saves, the gradient g. The gradient is
// unscaled ahead of the updates; behind them w is averaged. The optimizer's state is made by the
// first step, behind the update of v. Between the updates a temporary t is made, which goes behind
// them. There go, too: `found`, which the model let go of at 18; y; what the unpack of x handed
// out. Behind the last update the model lets go of x.
//    0 step_begin           1 forward L           2 op_begin            3 alloc x
//    4 pack x               5 op_end              6 forward end L       7 backward_begin
//    8 backward L           9 op_begin           10 unpack x           11 alloc y
//   12 alloc g             13 op_end             14 backward end L     15 backward_end
//   16 op_begin (unscale)  17 alloc found        18 op_end
//   19 update v            20 op_begin           21 op_end             22 update end v
//   23 alloc t             24 free found         25 free y
//   26 update w            27 op_begin           28 op_end             29 update end w
//   30 op_begin (average)  31 op_end             32 free t             33 free x
//   34 step_end
// An event is 10 ns behind the one ahead of it. Kernels are launched ahead of 19, 26 and 30. What
// is averaged is the view that the update wrote.
struct MixedStep {
  MixedStep() {
    MicroTrace t;
    t.set_up();
    v = t.existing(100);
    w = t.existing(200);
    t.begin_layer("L");
    t.begin_op();
    t.read(v);
    t.read(w);
    x = t.alloc(16);
    const SavedId saved = t.pack(x);
    t.end_op();
    t.end_layer("L");
    t.backward();
    t.begin_layer_backward("L");
    t.begin_op();
    const UnpackId unpack = t.unpack(saved);
    y = t.alloc(24);
    gradient = t.alloc(200, StorageClass::gradient);
    t.end_op();
    t.end_layer_backward("L");
    t.optimizer();
    t.begin_op("aten::unscale");
    t.write(gradient);
    found = t.alloc(4, StorageClass::temporary);
    t.end_op();
    t.let_go(found);
    t.kernel(5);
    t.update(v);
    state = t.made_by_first_step(40);
    temporary = t.alloc(64, StorageClass::temporary);
    t.drop(unpack);
    t.free(found);
    t.free(y);
    t.kernel(6);
    t.update(w);
    t.let_go(x);
    t.kernel(7);
    t.begin_op("aten::lerp");
    t.read(w);
    t.end_op();
    t.free(temporary);
    t.free(x);
    trace = t.finish();
    trace.uses.tensor.back() = trace.uses.tensor[trace.uses.size() - 2];
    set_times();
  }

  void set_times() {
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      trace.events.time[e] = 10 * static_cast<Nanoseconds>(e);
      if (trace.events.kind[e] != EventKind::op_begin) continue;
      trace.ops.start[static_cast<std::size_t>(trace.events.ref[e])] = trace.events.time[e];
    }
    for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
      trace.gpu.start[g] = trace.gpu.launch_start[g] =
          trace.events.time[trace.gpu.event[g].index()];
    }
  }

  StorageId v, w, x, y, gradient, found, state, temporary;
  Trace trace;
};

TEST(UpdateSection, IsFromTheFirstUpdateToTheLast) {
  const MixedStep t;
  ASSERT_TRUE(validate(t.trace, "").ok());
  const auto section = update_section(t.trace);
  ASSERT_TRUE(section.ok()) << section.error().text();
  EXPECT_EQ(section->first, nth(19));
  EXPECT_EQ(section->end, nth(30));
  EXPECT_THAT(section->frees, ElementsAre(nth(32)));
  EXPECT_FALSE(section->has(nth(18)));
  EXPECT_TRUE(section->has(nth(19)));
  EXPECT_TRUE(section->has(nth(29)));
  EXPECT_FALSE(section->has(nth(30)));
  EXPECT_TRUE(section->has(nth(32)));
  EXPECT_FALSE(section->has(nth(33)));
}

// Events 0 to 18, then 30, 31, 33 and 34 as 19 to 22. The state is a storage that exists before the
// step, so in the composed one it stands ahead of x.
TEST(StepWithoutUpdate, HasAllElse) {
  const MixedStep t;
  const auto step = unroll(t.trace, without_update());
  ASSERT_TRUE(step.ok()) << step.error().text();
  EXPECT_FALSE(step->is_recording());
  const Trace& s = step->trace();
  ASSERT_EQ(s.events.size(), 23U);
  EXPECT_EQ(step->origin(nth(18)).row, nth(18));
  EXPECT_EQ(step->origin(nth(19)).row, nth(30));
  EXPECT_EQ(step->origin(nth(21)).row, nth(33));
  EXPECT_EQ(step->origin(nth(22)).row, nth(34));
  EXPECT_EQ(step->pass(nth(18)), Pass::optimizer);
  for (std::size_t e = 0; e < s.events.size(); ++e) {
    EXPECT_EQ(s.events.time[e], 10 * static_cast<Nanoseconds>(e));
  }
  // v, w, state, x, y, g, found; not t.
  ASSERT_EQ(s.storages.size(), 7U);
  EXPECT_THAT(s.storages.bytes, ElementsAre(100, 200, 40, 16, 24, 200, 4));
  EXPECT_THAT(s.storages.free_event, ElementsAre(EventId(), EventId(), EventId(), nth(21),
                                                 EventId(), EventId(), EventId()));
  // x: behind 29, which is not there. y goes with the section, so it lives on. The model itself
  // has let go of `found`.
  EXPECT_THAT(s.storages.natural_free_event,
              ElementsAre(EventId(), EventId(), EventId(), nth(18), EventId(), EventId(), nth(18)));
  EXPECT_EQ(s.unpacks.released_event[0], EventId());
  // The kernel ahead of 19 belongs to what is not done, as the one ahead of 26; the other one is
  // launched behind the event that is now ahead of 19.
  ASSERT_EQ(s.gpu.size(), 1U);
  EXPECT_EQ(s.gpu.duration[0], 7);
  EXPECT_EQ(s.gpu.event[0], nth(18));
  EXPECT_EQ(s.setup.size(), 3U);
  EXPECT_EQ(s.setup.storage[2], StorageId(2));
  EXPECT_EQ(s.setup.event[2], nth(18));
  EXPECT_THAT(s.phases.kind,
              ElementsAre(PhaseKind::forward, PhaseKind::backward, PhaseKind::optimizer));
  EXPECT_EQ(s.phases.first_event[2], nth(16));
  EXPECT_EQ(s.phases.last_event[2], nth(22));
  ASSERT_EQ(s.ops.size(), 4U);
  EXPECT_EQ(s.string(s.ops.name[3]), "aten::lerp");
  EXPECT_EQ(s.uses.op.back(), OpId(3));
  EXPECT_EQ(s.tensors.storage[s.uses.tensor.back().index()], StorageId(1));
  EXPECT_EQ(s.fingerprint, fingerprint(t.trace));
  EXPECT_TRUE(validate(s, "").ok());
}

TEST(StepWithoutUpdate, KeepsItsRows) {
  const MixedStep t;
  const auto step = unroll(t.trace, without_update());
  ASSERT_TRUE(step.ok());
  const auto rows = KeptRows::find(t.trace, step->trace());
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->behind(), nth(19));
  EXPECT_EQ(rows->event(nth(18)), nth(18));
  EXPECT_EQ(rows->event(nth(19)), EventId());
  EXPECT_EQ(rows->event(nth(31)), nth(20));
  EXPECT_EQ(rows->event(nth(32)), EventId());
  EXPECT_EQ(rows->event(nth(34)), nth(22));
  EXPECT_EQ(rows->storage(t.w), StorageId(1));
  EXPECT_EQ(rows->storage(t.state), StorageId(2));
  EXPECT_EQ(rows->storage(t.x), StorageId(3));
  EXPECT_EQ(rows->storage(t.temporary), StorageId());
}

TEST(StepWithoutUpdate, IsOfOneStep) {
  const MixedStep t;
  const auto step = unroll(t.trace, without_update());
  ASSERT_TRUE(step.ok());
  const auto expect_other = [&](const Trace& taken, const Trace& skipped) {
    const auto rows = KeptRows::find(taken, skipped);
    ASSERT_FALSE(rows.ok());
    EXPECT_THAT(rows.error().message, HasSubstr("of another step"));
  };
  expect_other(t.trace, t.trace);
  Trace other = step->trace();
  other.storages.bytes[3] += 4;
  expect_other(t.trace, other);
  other = step->trace();
  other.events.kind[20] = EventKind::gradient_accumulated;
  expect_other(t.trace, other);
  other = step->trace();
  other.saved.storage[0] = StorageId(4);
  expect_other(t.trace, other);
}

// Of an optimizer that does not say what it updates: all of its phase but the step's end.
TEST(UpdateSection, IsTheWholePhaseWhereNoUpdateIsSaid) {
  MicroTrace t;
  const auto w = t.existing(8);
  t.begin_op();
  t.end_op();
  t.optimizer();
  t.begin_op();
  t.write(w);
  t.end_op();
  const Trace trace = t.finish();
  const auto section = update_section(trace);
  ASSERT_TRUE(section.ok());
  EXPECT_EQ(section->first, nth(3));
  EXPECT_EQ(section->end, nth(5));
  const auto step = unroll(trace, without_update());
  ASSERT_TRUE(step.ok());
  EXPECT_THAT(step->trace().events.kind, ElementsAre(EventKind::step_begin, EventKind::op_begin,
                                                     EventKind::op_end, EventKind::step_end));
}

std::string error_of(const Trace& trace) {
  const auto step = unroll(trace, without_update());
  EXPECT_FALSE(step.ok());
  return step.ok() ? "" : step.error().message;
}

TEST(UpdateSection, ThatIsNone) {
  {
    MicroTrace t;
    t.backward();
    EXPECT_THAT(error_of(t.finish()), HasSubstr("there is no optimizer's phase"));
  }
  {
    MicroTrace t;
    t.optimizer();  // but the step's end is all there is of it
    EXPECT_THAT(error_of(t.finish()), HasSubstr("there is no optimizer's phase"));
  }
  for (const bool says_updates : {true, false}) {
    MicroTrace t;
    const auto w = t.existing(8);
    for (int i = 0; i < 2; ++i) {
      t.backward();
      t.optimizer();
      if (says_updates) {
        t.update(w);
      } else {
        t.begin_op();
        t.end_op();
      }
    }
    EXPECT_THAT(error_of(t.finish()), HasSubstr("in several phases"));
  }
  {
    MicroTrace t;
    const auto w = t.existing(8);
    t.backward();
    t.update(w);
    t.optimizer();
    EXPECT_THAT(error_of(t.finish()), HasSubstr("in its backward phase"));
  }
  {
    MicroTrace t;
    const auto w = t.existing(8);
    t.optimizer();
    t.update(w);
    t.pack(w);
    t.update(w);
    EXPECT_THAT(error_of(t.finish()), HasSubstr("saves or uses saved tensors (event 5)"));
  }
}

// What the update makes, and what stands behind it needs, cannot be left out.
TEST(StepWithoutUpdate, ThatNeedsWhatTheUpdateMakes) {
  MicroTrace t;
  const auto w = t.existing(8);
  t.optimizer();
  t.update(w);
  const auto made = t.alloc(16);
  t.update(w);
  t.begin_op();
  t.read(made);
  t.end_op();
  EXPECT_THAT(error_of(t.finish()), HasSubstr("is of storage 1, which is not in the step"));
}

// Another decision's template replaces events beside the update, but none of it.
TEST(StepWithoutUpdate, WithAnotherDecision) {
  const MixedStep t;
  StepTemplate part;
  part.segment = "L";
  Piece piece;
  piece.first = nth(1);
  piece.end = nth(7);
  part.replacements.push_back({piece.first, piece.end, {piece}});
  Structure structure = without_update();
  structure.recompute = {"L"};
  const auto step = unroll(t.trace, structure, {part});
  ASSERT_TRUE(step.ok()) << step.error().text();
  const auto alone = unroll(t.trace, without_update());
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(step->trace().events.kind, alone->trace().events.kind);
  EXPECT_EQ(step->trace().events.ref, alone->trace().events.ref);

  piece.first = nth(18);
  piece.end = nth(20);
  part.replacements = {{piece.first, piece.end, {piece}}};
  const auto both = unroll(t.trace, structure, {part});
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.error().message,
              HasSubstr("recompute of segment 'L' and a step without its update replace the same"));
}

TEST(StepWithoutUpdate, IsAStructureOfItsOwn) {
  EXPECT_FALSE(without_update().empty());
  EXPECT_TRUE(Structure().empty());
}

}  // namespace
}  // namespace stowage::simulator
