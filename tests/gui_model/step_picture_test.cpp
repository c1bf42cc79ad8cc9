#include "gui/model/step_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gui/model/stall_cutter.h"
#include "tests/support/micro_trace.h"
#include "tests/traces/synthetic_trace.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

// The link moves 1 byte a nanosecond. Forward: a (400 bytes) is packed at 100 and let go; backward
// needs it.
TracePtr small_step() {
  testing::MicroTrace t;
  t.begin_layer("layers.0");
  t.run(100).begin_op("aten::mm");
  const auto a = t.alloc(400);
  const auto s = t.pack(a);
  t.end_op();
  t.let_go(a);
  t.end_layer("layers.0");
  t.run(1000).begin_op("aten::other");
  t.run(500).end_op();
  t.backward();
  t.run(10).begin_op("aten::mm_backward");
  const auto u = t.unpack(s);
  t.run(50).drop(u);
  t.end_op();
  t.free(a);
  return std::make_shared<const TraceData>(t.finish(), "", "");
}

SimulatedPtr offloaded(const TracePtr& trace) {
  PlanState state;
  simulator::SavedRule& rule = state.plan.saved.emplace_back();
  rule.site = "*";
  rule.decision = simulator::Decision::offload;
  rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  auto result = simulate(trace, std::make_shared<const PlanState>(state));
  EXPECT_TRUE(result) << result.error().text();
  return *result;
}

// Nothing says when backward of a layer ends whose input has no gradient: embed's does at 340, with
// that of all, and the next micro-batch begins with nothing open.
TEST(StepPicture, ALayerWithoutAnEndInBackwardEndsWithIt) {
  testing::MicroTrace t;
  for (int part = 0; part < 2; ++part) {
    if (part > 0) t.forward();
    t.begin_layer("embed");
    t.run(100).begin_op("aten::embedding");
    t.end_op();
    t.end_layer("embed");
    t.backward();
    t.run(40).begin_layer_backward("embed");
    t.run(200).begin_op("aten::embedding_backward");
    t.end_op();
  }
  const Trace trace = t.finish();
  const auto data = std::make_shared<const TraceData>(Trace(trace), "", "");
  const StepPicturePtr view = recorded_view(*data);
  const LaneView& lane = view->lane(LaneKind::layers);
  ASSERT_EQ(lane.rows.size(), 1U) << "all at the same depth";
  const SpanIndex& spans = lane.rows[0].spans;
  ASSERT_EQ(lane.rows[0].infos.size(), 4U);
  const Nanoseconds begins[] = {0, 140, 340, 480};
  const Nanoseconds ends[] = {100, 340, 440, 680};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(spans.begin(i), begins[i]) << i;
    EXPECT_EQ(spans.end(i), ends[i]) << i;
  }
}

// Where a replay has the allocator's history the curve has its counters; their highest points are
// the peaks that the replay tells.
TEST(StepPicture, HasActiveAndReservedBytesWhereTheyAreKnown) {
  auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const auto data = std::make_shared<const TraceData>(std::move(loaded->trace), "", "");
  const auto simulated =
      simulate(data, std::make_shared<const PlanState>(fresh_state(data->trace)));
  ASSERT_TRUE(simulated) << simulated.error().text();
  const StepPicturePtr view = planned_view(**simulated);
  const MemoryView& memory = view->memory;
  ASSERT_EQ(memory.active.size(), memory.time.size());
  ASSERT_EQ(memory.reserved.size(), memory.time.size());
  EXPECT_EQ(memory.active.extent(0, memory.active.size()).max, (*simulated)->result.peak_active);
  EXPECT_EQ(memory.reserved.extent(0, memory.reserved.size()).max,
            (*simulated)->result.peak_reserved);
  for (std::size_t i = 0; i < memory.time.size(); ++i) {
    ASSERT_GE(memory.active[i], memory.total[i]) << i;
    ASSERT_GE(memory.reserved[i], memory.active[i]) << i;
  }
  // Nothing is known of a step without that history.
  const SimulatedPtr bare = offloaded(small_step());
  EXPECT_EQ(planned_view(*bare)->memory.reserved.size(), 0U);
}

// All that is painted of a view, whatever it shares.
void expect_same(const StepPicture& a, const StepPicture& b) {
  EXPECT_EQ(a.memory.classes, b.memory.classes);
  EXPECT_EQ(a.memory.event, b.memory.event);
  EXPECT_EQ(a.memory.time, b.memory.time);
  EXPECT_EQ(a.memory.bytes, b.memory.bytes);
  EXPECT_EQ(a.memory.peak_at, b.memory.peak_at);
  ASSERT_EQ(a.memory.total.size(), b.memory.total.size());
  for (std::size_t i = 0; i < a.memory.total.size(); ++i) {
    EXPECT_EQ(a.memory.total[i], b.memory.total[i]);
  }
  for (const LaneView& lane : a.lanes) EXPECT_EQ(lane.rows, b.lane(lane.kind).rows);
}

bool shares_a_lane(const StepPicture& a, const StepPicture& b) {
  return std::any_of(a.lanes.begin(), a.lanes.end(), [&](const LaneView& lane) {
    return lane.rows.shares_with(b.lane(lane.kind).rows);
  });
}

TEST(StepPicture, IsSharedWhereNothingMovesAndNoTimeDiffers) {
  const TracePtr trace = small_step();
  const StepPicturePtr recorded = recorded_view(*trace);
  const auto kept = simulate(trace, std::make_shared<const PlanState>());
  ASSERT_TRUE(kept);
  const StepPicturePtr planned = planned_view(**kept, recorded);
  EXPECT_EQ(planned->source, Source::predicted);
  EXPECT_TRUE(planned->memory.event.shares_with(recorded->memory.event));
  EXPECT_TRUE(planned->memory.time.shares_with(recorded->memory.time));
  EXPECT_TRUE(planned->memory.bytes[0].shares_with(recorded->memory.bytes[0]));
  for (const LaneKind kind : {LaneKind::layers, LaneKind::compute}) {
    EXPECT_TRUE(planned->lane(kind).rows.shares_with(recorded->lane(kind).rows));
  }
  const StepPicturePtr alone = planned_view(**kept);
  EXPECT_FALSE(alone->memory.event.shares_with(recorded->memory.event));
  EXPECT_FALSE(shares_a_lane(*alone, *recorded));
  expect_same(*alone, *planned);
}

// A trace whose first event is not at 0: the replay's times begin there.
TEST(StepPicture, OtherTimesLeaveTheBytesShared) {
  const auto trace = std::make_shared<const TraceData>(testing::small_trace(), "", "");
  ASSERT_NE(trace->trace.events.time[0], 0);
  const StepPicturePtr recorded = recorded_view(*trace);
  const auto kept = simulate(trace, std::make_shared<const PlanState>());
  ASSERT_TRUE(kept);
  const StepPicturePtr planned = planned_view(**kept, recorded);
  EXPECT_NE(planned->memory.time, recorded->memory.time);
  EXPECT_TRUE(planned->memory.event.shares_with(recorded->memory.event));
  EXPECT_TRUE(planned->memory.bytes[0].shares_with(recorded->memory.bytes[0]));
  expect_same(*planned, *planned_view(**kept));
}

// What is shared stays what it was when a plan moves something, and when that is taken back.
TEST(StepPicture, APlanThatMovesChangesNothingOfTheRecordedStep) {
  const TracePtr trace = small_step();
  const StepPicturePtr recorded = recorded_view(*trace);
  const StepPicturePtr kept =
      planned_view(**simulate(trace, std::make_shared<const PlanState>()), recorded);
  const StepPicturePtr moved = planned_view(*offloaded(trace), recorded);
  EXPECT_NE(moved->memory.time, recorded->memory.time);
  EXPECT_FALSE(moved->memory.event.shares_with(recorded->memory.event));
  EXPECT_NE(moved->lane(LaneKind::compute).rows, recorded->lane(LaneKind::compute).rows);
  expect_same(*moved, *planned_view(*offloaded(trace)));
  expect_same(*recorded, *recorded_view(*trace));
  const StepPicturePtr back =
      planned_view(**simulate(trace, std::make_shared<const PlanState>()), recorded);
  expect_same(*back, *kept);
  expect_same(*kept, *recorded);
}

TEST(StepPicture, ShowsCopiesAndStallsOfThePlannedStep) {
  const SimulatedPtr simulated = offloaded(small_step());
  const StepPicturePtr view = planned_view(*simulated);
  EXPECT_EQ(view->source, Source::predicted);
  ASSERT_EQ(view->lane(LaneKind::d2h).rows.size(), 1U);
  const LaneRow& out = view->lane(LaneKind::d2h).rows[0];
  ASSERT_EQ(out.spans.size(), 1U);
  EXPECT_EQ(out.bytes_of(0), 400);
  EXPECT_EQ(out.spans.end(0) - out.spans.begin(0), 400);
  ASSERT_EQ(view->lane(LaneKind::stalls).rows.size(), 1U);
  EXPECT_EQ(view->lane(LaneKind::stalls).rows[0].spans.covered(0, view->end),
            simulated->result.stall_ns);
  EXPECT_EQ(view->end, simulated->result.step_ns);
  EXPECT_EQ(view->memory.peak(), simulated->result.peak_requested);
}

TEST(StepPicture, ComputeIsIdleWhileItStalls) {
  const SimulatedPtr simulated = offloaded(small_step());
  const StepPicturePtr view = planned_view(*simulated);
  const LaneRow& stalls = view->lane(LaneKind::stalls).rows[0];
  const LaneRow& compute = view->lane(LaneKind::compute).rows[0];
  ASSERT_GT(stalls.spans.size(), 0U);
  for (std::size_t i = 0; i < stalls.spans.size(); ++i) {
    EXPECT_LT(stalls.spans.begin(i), stalls.spans.end(i));
    EXPECT_EQ(compute.spans.covered(stalls.spans.begin(i), stalls.spans.end(i)), 0) << i;
  }
  // mm 100 - 100 (pack at once), other 500 and mm_backward 50 work as long as they were recorded.
  EXPECT_EQ(compute.spans.covered(0, view->end), 500 + 50);
  EXPECT_EQ(simulated->result.stall_ns, 400) << "the reload starts where it is needed";
}

TEST(StepPicture, PartsOfAnOpThatAStallCutsKnowTheWholeOp) {
  testing::MicroTrace t;
  t.run(100).begin_op("aten::mm");
  const auto a = t.alloc(400);
  const auto s = t.pack(a);
  t.end_op();
  t.let_go(a);
  t.run(1000).begin_op("aten::other");
  t.run(500).end_op();
  t.backward();
  t.run(10).begin_op("aten::mm_backward");
  const auto u = t.run(20).unpack(s);
  t.run(30).drop(u);
  t.end_op();
  t.free(a);
  const StepPicturePtr view =
      planned_view(*offloaded(std::make_shared<const TraceData>(t.finish(), "", "")));
  const LaneRow& compute = view->lane(LaneKind::compute).rows[0];
  // The reload starts where it is needed, 20 into the last op, and takes 400.
  const std::size_t last = compute.spans.size() - 1;
  ASSERT_EQ(compute.cuts.size(), 2U);
  EXPECT_EQ(compute.infos[last], compute.infos[last - 1]);
  const Nanoseconds begin = compute.spans.begin(last - 1);
  for (const std::size_t part : {last - 1, last}) {
    ASSERT_NE(compute.cut_of(part), nullptr);
    EXPECT_EQ(*compute.cut_of(part),
              (CutWork{static_cast<std::uint32_t>(part), begin, begin + 20 + 400 + 30, 400}));
  }
  EXPECT_EQ(compute.spans.end(last), begin + 20 + 400 + 30);
  for (std::size_t i = 0; i + 1 < last; ++i) EXPECT_EQ(compute.cut_of(i), nullptr);
}

TEST(StepPicture, AnOpIsCutWhereItStallsAndStaysOneRow) {
  const auto span = [](Nanoseconds begin, Nanoseconds end) {
    report::Span made;
    made.begin = begin;
    made.end = end;
    return made;
  };
  const std::vector<report::Span> stalls{span(5, 10), span(10, 20), span(30, 40), span(90, 95)};
  StallCutter cutter(stalls);
  using Parts = std::vector<std::pair<Nanoseconds, Nanoseconds>>;
  const auto cut = [&](Nanoseconds begin, Nanoseconds end) {
    Parts parts;
    cutter.cut(begin, end, [&](Nanoseconds b, Nanoseconds e) { parts.emplace_back(b, e); });
    return parts;
  };
  EXPECT_EQ(cut(0, 5), (Parts{{0, 5}}));
  EXPECT_EQ(cut(5, 20), (Parts{{20, 20}})) << "it only waits, and is still there to be found";
  EXPECT_EQ(cut(20, 35), (Parts{{20, 30}}));
  EXPECT_EQ(cut(35, 60), (Parts{{40, 60}}));
  EXPECT_EQ(cut(60, 60), (Parts{{60, 60}}));
  EXPECT_EQ(cut(80, 100), (Parts{{80, 90}, {95, 100}}));
}

TEST(StepPicture, AnEmptyLaneSaysWhy) {
  const TracePtr trace = small_step();
  const StepPicturePtr view = recorded_view(*trace);
  EXPECT_EQ(view->source, Source::measured);
  for (const LaneView& lane : view->lanes) {
    EXPECT_EQ(lane.rows.empty(), !lane.why_empty.empty());
  }
  EXPECT_TRUE(view->lane(LaneKind::d2h).rows.empty());
  EXPECT_TRUE(view->lane(LaneKind::launch).rows.empty());
  EXPECT_EQ(view->lane(LaneKind::layers).rows.size(), 1U);
}

TEST(StepPicture, ARangeIsMeasuredWithTheShareOfACutCopy) {
  const SimulatedPtr simulated = offloaded(small_step());
  const StepPicturePtr view = planned_view(*simulated);
  const LaneRow& out = view->lane(LaneKind::d2h).rows[0];
  const Nanoseconds begin = out.spans.begin(0);
  const RangeFigures all = measure(*view, {0, view->end});
  EXPECT_EQ(all.d2h, 400);
  EXPECT_EQ(all.h2d, 400);
  EXPECT_EQ(all.memory_max, simulated->result.peak_requested);
  EXPECT_EQ(all.stall, simulated->result.stall_ns);
  const RangeFigures half = measure(*view, {begin, begin + 100});
  EXPECT_EQ(half.d2h, 100);
  EXPECT_EQ(half.duration, 100);
  EXPECT_DOUBLE_EQ(gigabytes_per_second(half.d2h, half.duration), 1.0);
  EXPECT_EQ(gigabytes_per_second(5, 0), 0);
}

// Kernels of two streams: [0, 100) and [300, 400) of one, [50, 350) of the other.
TEST(StepPicture, ARangeIsBusyWhereverAnyStreamWorks) {
  StepPicture view;
  for (const auto kind : {LaneKind::layers, LaneKind::launch, LaneKind::compute, LaneKind::d2h,
                          LaneKind::h2d, LaneKind::stalls}) {
    view.lanes.push_back({kind, {}, ""});
  }
  LaneRow one;
  one.spans = SpanIndex({0, 300}, {100, 400});
  LaneRow other;
  other.spans = SpanIndex({50}, {350});
  view.lanes[2].rows = std::vector<LaneRow>{one, other};
  EXPECT_EQ(measure(view, {0, 1000}).compute, 400);
  EXPECT_EQ(measure(view, {90, 120}).compute, 30);
  EXPECT_EQ(measure(view, {340, 500}).compute, 60);
  EXPECT_EQ(measure(view, {400, 500}).compute, 0);
}

TEST(StepPicture, MemoryHoldsFromOnePointToTheNext) {
  MemoryView memory;
  memory.time = std::vector<Nanoseconds>{0, 100, 100, 200};
  memory.event = std::vector<EventId>(4);
  memory.total = MinMaxPyramid({1, 5, 2, 3});
  const auto range = [&](double begin, double end) {
    const MemoryView::Range r = memory.points(begin, end);
    return std::pair(r.first, r.last);
  };
  EXPECT_EQ(range(0, 50), std::pair(std::size_t{0}, std::size_t{1}));
  EXPECT_EQ(range(50, 60), std::pair(std::size_t{0}, std::size_t{1}));
  EXPECT_EQ(range(50, 101), std::pair(std::size_t{0}, std::size_t{3}));
  EXPECT_EQ(range(100, 150), std::pair(std::size_t{1}, std::size_t{3}));
  EXPECT_EQ(range(150, 190), std::pair(std::size_t{2}, std::size_t{3}));
  EXPECT_EQ(range(500, 600), std::pair(std::size_t{3}, std::size_t{4}));
}

TEST(StepPicture, OfTheSampleAddsUp) {
  auto loaded = load_trace(std::string(STOWAGE_SOURCE_DIR) +
                           "/traces/samples/llama3-8b-l9-fp32-math-h200.trace.json.gz");
  ASSERT_TRUE(loaded);
  const auto data = std::make_shared<const TraceData>(std::move(loaded->trace), "", "");
  const StepPicturePtr recorded = recorded_view(*data);
  EXPECT_EQ(recorded->memory.peak(), 62'996'267'264);
  const auto same = simulate(data, std::make_shared<const PlanState>());
  ASSERT_TRUE(same);
  const StepPicturePtr planned = planned_view(**same);
  EXPECT_EQ(planned->memory.peak(), 62'996'267'264);
  EXPECT_FALSE(planned->lane(LaneKind::launch).rows.empty());
  EXPECT_FALSE(recorded->lane(LaneKind::launch).rows.empty());
  EXPECT_EQ(recorded->lane(LaneKind::layers).rows.size(), 2U);
  for (const StepPicturePtr& view : {recorded, planned}) {
    for (std::size_t i = 0; i < view->memory.time.size(); ++i) {
      Bytes sum = 0;
      for (const auto& bytes : view->memory.bytes) sum += bytes[i];
      ASSERT_EQ(sum, view->memory.total[i]);
    }
  }
}

// gpt2 in bf16: two layers run again, and an activation of each of six others is made by ops.
SimulatedPtr again_in_gpt2() {
  auto trace = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  EXPECT_TRUE(trace) << trace.error().text();
  PlanState state;
  state.plan.recompute.emplace_back().segment = "layers.[3-4]";
  simulator::SavedRule& rule = state.plan.saved.emplace_back();
  rule.site = "layers.[6-11].mlp#8";
  rule.decision = simulator::Decision::recompute;
  auto made = simulate(std::make_shared<const TraceData>(std::move(trace->trace), "", ""),
                       std::make_shared<const PlanState>(state));
  EXPECT_TRUE(made) << made.error().text();
  return *made;
}

TEST(StepPicture, WhatRunsAgainIsMarkedInItsLanesAndABandOfTheMemory) {
  const SimulatedPtr simulated = again_in_gpt2();
  const StepPicturePtr view = planned_view(*simulated, recorded_view(*simulated->trace));
  const StepRows& rows = *simulated->rows;
  std::size_t again = 0;
  for (const LaneRow& row : view->lane(LaneKind::compute).rows) {
    Nanoseconds marked = 0;
    for (std::size_t i = 0; i < row.infos.size(); ++i) {
      const SpanInfo& info = row.infos[i];
      const bool is_again = info.kind == Selection::Kind::op && rows.is_again(OpId(info.row));
      EXPECT_EQ(info.again, is_again);
      if (!info.again) continue;
      ++again;
      marked += row.spans.end(i) - row.spans.begin(i);
      // The op that it is the same as ran in forward, under the same name.
      const OpId original = rows.original_of(OpId(info.row));
      ASSERT_TRUE(original.valid());
      EXPECT_FALSE(rows.is_again(original));
      EXPECT_EQ(rows.step().trace().ops.name[original.index()], info.name);
    }
    Nanoseconds hatched = 0;
    for (const TimeRange& range : row.again) hatched += range.duration();
    EXPECT_EQ(hatched, marked);
  }
  EXPECT_GT(again, 100U);
  // A third row: layers that run again lie inside of their own backward.
  const LaneView& layers = view->lane(LaneKind::layers);
  ASSERT_EQ(layers.rows.size(), 3U);
  ASSERT_EQ(layers.rows[2].infos.size(), 2U);
  EXPECT_EQ(rows.step().trace().string(layers.rows[2].infos[0].name), "layers.4");
  EXPECT_EQ(layers.rows[2].again.size(), 2U);

  const MemoryView& memory = view->memory;
  ASSERT_TRUE(memory.has_again());
  Bytes most = 0;
  for (std::size_t i = 0; i < memory.total.size(); ++i) {
    Bytes sum = 0;
    for (const auto& band : memory.bytes) {
      EXPECT_GE(band[i], 0);
      sum += band[i];
    }
    ASSERT_EQ(sum, memory.total[i]);
    most = std::max(most, memory.bytes.back()[i]);
  }
  EXPECT_EQ(memory.peak(), simulated->result.peak_requested);
  // At least what one layer saves of its own: 16 tensors, the largest of 100 MB.
  EXPECT_GT(most, 100'000'000);
  EXPECT_EQ(memory.bytes.back()[0], 0) << "nothing ran yet";
  EXPECT_FALSE(recorded_view(*simulated->trace)->memory.has_again());
}

TEST(StepPicture, RowsOfTheRecordingAreFoundInTheStepAndBack) {
  const SimulatedPtr simulated = again_in_gpt2();
  const StepRows& rows = *simulated->rows;
  const Trace& recording = simulated->trace->trace;
  using Kind = Selection::Kind;
  const auto expect_back = [&](Kind kind, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Selection recorded{kind, static_cast<std::int32_t>(i)};
      ASSERT_EQ(rows.in_recording(rows.in_step(recorded)), recorded) << i;
    }
  };
  expect_back(Kind::op, recording.ops.size());
  expect_back(Kind::saved, recording.saved.size());
  expect_back(Kind::storage, recording.storages.size());
  // Packs of what is given up, and frees, are where the run again puts them: some are no row here.
  std::size_t found = 0;
  for (std::size_t i = 0; i < recording.events.size(); ++i) {
    const Selection recorded{Kind::event, static_cast<std::int32_t>(i)};
    const Selection there = rows.in_step(recorded);
    if (there.row < 0) continue;
    ++found;
    ASSERT_EQ(rows.in_recording(there), recorded) << i;
  }
  EXPECT_GT(found, recording.events.size() * 9 / 10);
  for (std::size_t i = 0; i < recording.saved.size(); ++i) {
    const Selection there = rows.in_step({Kind::saved, static_cast<std::int32_t>(i)});
    const Trace& step = rows.step().trace();
    ASSERT_EQ(step.string(step.saved.site[static_cast<std::size_t>(there.row)]),
              recording.string(recording.saved.site[i]));
  }
  EXPECT_EQ(rows.in_step({Kind::layer, 3}), (Selection{Kind::layer, 3}));
  EXPECT_EQ(rows.in_step({}).row, -1);
  EXPECT_EQ(in_step(nullptr, {Kind::op, 7}), (Selection{Kind::op, 7}));
  // A kernel is the op that launched it.
  ASSERT_GT(recording.gpu.size(), 0U);
  EXPECT_EQ(rows.in_step({Kind::gpu, 0}), rows.in_step({Kind::op, recording.gpu.op[0].value}));
}

}  // namespace
}  // namespace stowage::gui
