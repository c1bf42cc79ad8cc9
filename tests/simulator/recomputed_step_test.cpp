// Segments that run again: the events, lifetimes and times of small steps, derived by hand.
#include "simulator/step/recomputed_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "simulator/step/segments.h"
#include "tests/support/micro_trace.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

std::string text_of(const Trace& trace, std::size_t event) {
  const EventKind kind = trace.events.kind[event];
  const auto ref = static_cast<std::size_t>(std::max(trace.events.ref[event], 0));
  switch (kind) {
    case EventKind::alloc:
    case EventKind::free:
      return std::string(name_of(kind)) + " " + std::to_string(trace.storages.bytes[ref]);
    case EventKind::pack:
      return "pack " + trace.string(trace.saved.site[ref]);
    case EventKind::unpack: {
      const SavedId saved = trace.unpacks.saved[ref];
      return "unpack " + trace.string(trace.saved.site[saved.index()]) + " of pack " +
             std::to_string(saved.value);
    }
    case EventKind::op_begin:
    case EventKind::op_end:
      return std::string(name_of(kind)) + " " + trace.string(trace.ops.name[ref]);
    case EventKind::layer_forward_begin:
    case EventKind::layer_forward_end:
    case EventKind::recompute_begin:
    case EventKind::recompute_end:
      return std::string(name_of(kind)) + " " + trace.string(trace.layers.name[ref]);
    default:
      return name_of(kind);
  }
}

std::vector<std::string> texts_of(const Trace& trace) {
  std::vector<std::string> texts;
  for (std::size_t e = 0; e < trace.events.size(); ++e) texts.push_back(text_of(trace, e));
  return texts;
}

// Layer "a" multiplies its input x (100 bytes) into y (200), which lives as long as its exp needs
// it, and returns the exp z (300), which the loss saves. In backward z, y and x are asked for.
struct SmallStep {
  MicroTrace t;
  StorageId x, y, z;

  SmallStep() {
    x = t.alloc(100);
    const TensorId input = t.view(x);
    t.begin_layer("a");
    t.passed(input);
    t.run(10).begin_op("mul");
    t.read(x);
    const SavedId saved_x = t.pack(x);
    t.run(10);
    y = t.alloc(200);
    t.run(10).end_op();
    t.run(10).begin_op("exp");
    t.read(y);
    const SavedId saved_y = t.pack(y);
    t.run(10);
    z = t.alloc(300);
    t.run(10).end_op();
    t.let_go(y);
    t.end_layer("a");
    t.passed(t.view(z));
    t.let_go(x);
    t.begin_op("loss");
    const SavedId saved_z = t.pack(z);
    t.run(10).end_op();
    t.let_go(z);
    t.backward();
    const UnpackId of_z = t.unpack(saved_z);
    t.drop(of_z);
    t.run(10);
    t.free(z);
    const UnpackId of_y = t.unpack(saved_y);
    t.run(10).begin_op("exp_backward");
    t.end_op();
    t.drop(of_y);
    t.free(y);
    const UnpackId of_x = t.unpack(saved_x);
    t.drop(of_x);
    t.free(x);
  }
};

RecomputedStep recomputed(const Trace& trace, const std::vector<std::string>& names) {
  const SegmentFinder finder(trace);
  std::vector<Segment> segments;
  for (const std::string& name : names) {
    Result<Segment> segment = finder.find(name);
    EXPECT_TRUE(segment.ok()) << (segment ? "" : segment.error().text());
    if (segment) segments.push_back(std::move(segment).value());
  }
  Result<RecomputedStep> step = recompute(trace, segments);
  EXPECT_TRUE(step.ok());
  return step ? std::move(step).value() : RecomputedStep();
}

TEST(RecomputedStep, RunsTheLayerAgainWhereItsFirstSavedTensorIsAskedFor) {
  SmallStep small;
  const Trace trace = small.t.finish();
  const RecomputedStep step = recomputed(trace, {"a"});
  const Status valid = validate(step.trace, "");
  ASSERT_TRUE(valid.ok()) << valid.error().text();
  // The exp is not run again: backward needs its input alone.
  const std::vector<std::string> expected = {
      "step_begin",
      "alloc 100",
      "layer_forward_begin a",
      "pack a#in0",
      "op_begin mul",
      "pack a#0",
      "alloc 200",
      "op_end mul",
      "op_begin exp",
      "pack a#1",
      "alloc 300",
      "op_end exp",
      "free 200",  // y is given up
      "layer_forward_end a",
      "op_begin loss",
      "pack step#0",
      "op_end loss",
      "backward_begin",
      "unpack step#0 of pack 3",
      "free 300",
      "recompute_begin a",
      "layer_forward_begin a",
      "unpack a#in0 of pack 0",
      "op_begin mul",
      "pack a#0",
      "alloc 200",
      "op_end mul",
      "op_begin exp",
      "pack a#1",
      "op_end exp",
      "layer_forward_end a",
      "recompute_end a",
      "unpack a#1 of pack 5",
      "op_begin exp_backward",
      "op_end exp_backward",
      "free 200",
      "unpack a#0 of pack 4",
      "free 100",
      "step_end",
  };
  const std::vector<std::string> texts = texts_of(step.trace);
  for (std::size_t i = 0; i < std::min(texts.size(), expected.size()); ++i) {
    EXPECT_EQ(texts[i], expected[i]) << "event " << i;
  }
  EXPECT_EQ(texts.size(), expected.size());
}

}  // namespace
}  // namespace stowage::simulator
