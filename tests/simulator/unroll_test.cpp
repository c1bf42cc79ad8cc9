#include "simulator/step/unroll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "tests/support/micro_trace.h"
#include "traces/fingerprint.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using stowage::testing::MicroTrace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EventId event(std::size_t number) {
  return EventId(number);
}

std::shared_ptr<const Trace> shared(Trace trace) {
  return std::make_shared<const Trace>(std::move(trace));
}

// The whole step in the place of itself, in pieces cut at random places.
StepTemplate cut_up(const Trace& trace, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  StepTemplate whole;
  whole.segment = kWholeStep;
  whole.parts = 2;
  Replacement replacement{event(1), EventId(trace.events.size() - 1), {}};
  for (EventId at = replacement.first; at < replacement.end;) {
    const std::size_t length = 1 + random() % 9;
    const EventId end = std::min(EventId(at.index() + length), replacement.end);
    Piece piece;
    piece.first = at;
    piece.end = end;
    replacement.pieces.push_back(piece);
    at = end;
  }
  whole.replacements.push_back(std::move(replacement));
  return whole;
}

// Of a source that is the recording once more: what exists before the step is the recording's.
TemplateSource copy_of(const Trace& trace) {
  TemplateSource source{"parts", shared(trace), {}};
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.alloc_event[s].valid()) continue;
    source.storages.emplace_back(StorageId(s), StorageId(s));
  }
  return source;
}

const Structure kWholeInParts{{}, {{kWholeStep, 2}}};

void expect_equal(const StepIndex& a, const Schedule& schedule_a, const StepIndex& b,
                  const Schedule& schedule_b) {
  ReplayDetail detail_a;
  ReplayDetail detail_b;
  const ReplayResult result_a = replay(a, schedule_a, &detail_a);
  const ReplayResult result_b = replay(b, schedule_b, &detail_b);
  EXPECT_EQ(result_a.peak_requested, result_b.peak_requested);
  EXPECT_EQ(result_a.peak_active, result_b.peak_active);
  EXPECT_EQ(result_a.peak_reserved, result_b.peak_reserved);
  EXPECT_EQ(result_a.peak_event, result_b.peak_event);
  EXPECT_EQ(result_a.allocator_periods, result_b.allocator_periods);
  EXPECT_EQ(result_a.host_bytes, result_b.host_bytes);
  EXPECT_EQ(result_a.step_ns, result_b.step_ns);
  EXPECT_EQ(result_a.compute_ns, result_b.compute_ns);
  EXPECT_EQ(result_a.stall_ns, result_b.stall_ns);
  EXPECT_EQ(result_a.d2h_bytes, result_b.d2h_bytes);
  EXPECT_EQ(result_a.h2d_bytes, result_b.h2d_bytes);
  EXPECT_EQ(result_a.stalls.size(), result_b.stalls.size());
  EXPECT_EQ(detail_a.requested, detail_b.requested);
  EXPECT_EQ(detail_a.active, detail_b.active);
  EXPECT_EQ(detail_a.reserved, detail_b.reserved);
  EXPECT_EQ(detail_a.time, detail_b.time);
  EXPECT_EQ(detail_a.launch, detail_b.launch);
}

void expect_same_step(const Trace& recorded, const Step& step, std::uint64_t seed) {
  EXPECT_EQ(recorded.events.kind, step.trace().events.kind);
  EXPECT_EQ(recorded.events.time, step.trace().events.time);
  EXPECT_EQ(step.trace().fingerprint, fingerprint(recorded));
  EXPECT_TRUE(validate(step.trace(), "step").ok());
  const StepIndex a(recorded);
  const StepIndex b(step);
  expect_equal(a, resident_schedule(a), b, resident_schedule(b));
  const Decisions decisions = stowage::testing::random_decisions(recorded, seed);
  const auto lowered_a = lower(a, decisions);
  const auto lowered_b = lower(b, decisions);
  ASSERT_EQ(lowered_a.ok(), lowered_b.ok());
  if (!lowered_a) return;
  EXPECT_THAT(find_hazards(b, lowered_b->schedule), IsEmpty());
  expect_equal(a, lowered_a->schedule, b, lowered_b->schedule);
}

stowage::testing::RandomTraceOptions options_of(std::uint64_t seed) {
  stowage::testing::RandomTraceOptions options;
  options.device_times = seed % 2 == 1;
  options.setup = seed % 4 == 3;
  options.parameters = seed % 3 == 1;
  options.several_weights = seed % 5 == 1;
  return options;
}

TEST(Unroll, WithoutStructureIsTheRecordingItself) {
  const Trace trace = stowage::testing::random_trace(1);
  const auto step = unroll(trace, {});
  ASSERT_TRUE(step.ok());
  EXPECT_TRUE(step->is_recording());
  EXPECT_EQ(&step->trace(), &trace);
  EXPECT_EQ(step->trace().events.kind.data(), trace.events.kind.data());
  EXPECT_EQ(&step->recording(), &trace);
  EXPECT_EQ(&StepIndex(*step).trace(), &trace);
  EXPECT_EQ(&StepIndex(trace).step().trace(), &trace);
  // One part is all of it: as recorded.
  EXPECT_TRUE(unroll(trace, {{}, {{kWholeStep, 1}}})->is_recording());
  const EventId last(trace.events.size() - 1);
  EXPECT_EQ(step->origin(last), (Origin<EventId>{0, last}));
  EXPECT_EQ(step->source_name(0), "step");
  EXPECT_EQ(step->source_count(), 1U);
  EXPECT_EQ(step->pass(event(1)), Pass::forward);
  EXPECT_EQ(step->pass(trace.unpacks.event.front()), Pass::backward);
  EXPECT_EQ(step->pass(last), Pass::optimizer);
  EXPECT_EQ(step->micro_batch(last), 0);
  EXPECT_EQ(step->micro_batch(StorageId(0)), -1);
}

TEST(Unroll, OfItsOwnPiecesIsTheRecording) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = stowage::testing::random_trace(seed, options_of(seed));
    const auto step = unroll(trace, kWholeInParts, {cut_up(trace, seed)});
    ASSERT_TRUE(step.ok()) << step.error().text();
    EXPECT_FALSE(step->is_recording());
    expect_same_step(trace, *step, seed);
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      ASSERT_EQ(step->origin(event(e)), (Origin<EventId>{0, event(e)}));
      ASSERT_EQ(step->pass(event(e)), Step(trace).pass(event(e)));
      ASSERT_EQ(step->micro_batch(event(e)), Step(trace).micro_batch(event(e)));
    }
    for (std::size_t o = 0; o < trace.ops.size(); ++o) {
      ASSERT_EQ(step->origin(OpId(o)), (Origin<OpId>{0, OpId(o)}));
      ASSERT_EQ(step->pass(OpId(o)), Step(trace).pass(OpId(o)));
    }
  }
}

// The same with rows of another pass that is the same step: all but what exists before is its own.
TEST(Unroll, OfPiecesOfAnEqualPassIsTheRecording) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto options = options_of(seed);
    options.setup = false;  // what the first step makes stays where it is in the recording
    const Trace trace = stowage::testing::random_trace(seed, options);
    StepTemplate whole = cut_up(trace, seed);
    whole.sources.push_back(copy_of(trace));
    for (Piece& piece : whole.replacements[0].pieces) piece.source = 0;
    const auto step = unroll(trace, kWholeInParts, {whole});
    ASSERT_TRUE(step.ok()) << step.error().text();
    expect_same_step(trace, *step, seed);
    EXPECT_EQ(step->origin(event(1)).source, 1);
    EXPECT_EQ(step->source_name(1), "parts");
  }
}

// A layer `a` whose activation h of 400 bytes is saved, and a layer `b` that takes 500 for a while.
struct TwoUnrolled {
  Trace trace;
  StorageId x, y;
  EventId forward, forward_end, backward, backward_end;  // of `a`
};

TwoUnrolled two_layers() {
  MicroTrace t;
  TwoUnrolled made;
  made.x = t.alloc(100);
  made.forward = EventId(t.last_event().index() + 1);
  t.begin_layer("a");
  t.begin_op();
  const auto h = t.run(10).alloc(400);
  const auto saved = t.pack(h);
  made.y = t.alloc(100);
  t.end_op();
  t.let_go(h);
  t.end_layer("a");
  made.forward_end = EventId(t.last_event().index() + 1);
  t.begin_layer("b");
  t.begin_op();
  const auto temporary = t.alloc(500, StorageClass::temporary);
  t.read(made.y);
  t.run(30).free(temporary);
  t.end_op();
  t.end_layer("b");
  t.backward();
  made.backward = EventId(t.last_event().index() + 1);
  t.begin_layer_backward("a");
  t.begin_op();
  t.unpack(saved);
  t.run(20).end_op();
  t.free(h);
  t.end_layer_backward("a");
  made.backward_end = EventId(t.last_event().index() + 1);
  t.run(1).free(made.y);
  t.free(made.x);
  made.trace = t.finish();
  return made;
}

// The pass recompute_all: `a` runs without saving, and again in backward, where it takes 12 ns.
StepTemplate recompute_a(const TwoUnrolled& recorded) {
  MicroTrace t;
  t.existing(8);  // storages have other rows here
  const auto x = t.alloc(100);
  const auto first = [&] { return EventId(t.last_event().index() + 1); };
  Piece forward;
  forward.source = 0;
  forward.first = first();
  t.begin_layer("a");
  t.begin_op();
  const auto h = t.run(9).alloc(400);
  const auto y = t.alloc(100);
  t.end_op();
  t.free(h);
  t.end_layer("a");
  forward.end = first();
  t.run(7).backward();
  Piece again = forward;
  again.pass = Pass::recompute;
  again.first = first();
  t.begin_layer("a");
  t.begin_op();
  const auto h2 = t.run(12).alloc(400);
  const auto saved = t.pack(h2);
  const auto y2 = t.alloc(100);
  t.end_op();
  t.let_go(h2);
  t.end_layer("a");
  t.free(y2);
  again.end = first();
  Piece backward = forward;
  backward.first = first();
  t.begin_layer_backward("a");
  t.begin_op();
  t.unpack(saved);
  t.run(20).end_op();
  t.free(h2);
  t.let_go(x);  // the re-run needs it until here
  t.end_layer_backward("a");
  backward.end = first();
  t.free(y);
  t.free(x);
  StepTemplate made;
  made.segment = "a";
  made.sources.push_back({"recompute_all", shared(t.finish()), {{x, recorded.x}, {y, recorded.y}}});
  made.replacements.push_back({recorded.forward, recorded.forward_end, {forward}});
  made.replacements.push_back({recorded.backward, recorded.backward_end, {again, backward}});
  return made;
}

// Events of the step, with bytes alive and time behind each:
//    0 step_begin            0    0 |  x
//    1 alloc x             100    0
//    2 layer a forward     100    0 |  first run, h is not kept
//    3 op_begin            100    0
//    4 alloc h             500    9
//    5 alloc y             600    9
//    6 op_end              600    9
//    7 free h              200    9
//    8 layer a end         200    9
//    9 layer b forward     200    9
//   10 op_begin            200    9
//   11 alloc temporary     700    9     peak; as recorded it is 1100 there
//   12 free temporary      200   39
//   13 op_end              200   39
//   14 layer b end         200   39
//   15 backward_begin      200   39     the 7 ns ahead of it in the other pass do not come along
//   16 layer a forward     200   39 |  the re-run
//   17 op_begin            200   39
//   18 alloc h             600   51
//   19 pack h              600   51
//   20 alloc y2            700   51
//   21 op_end              700   51
//   22 layer a end         700   51
//   23 free y2             600   51
//   24 layer a backward    600   51
//   25 op_begin            600   51
//   26 unpack h            600   51
//   27 op_end              600   71
//   28 free h              200   71
//   29 layer a end         200   71
//   30 free y              100   72
//   31 free x                0   72
//   32 step_end              0   72
TEST(Unroll, LayerThatRunsAgainInBackward) {
  const TwoUnrolled recorded = two_layers();
  const StepIndex plain(recorded.trace);
  EXPECT_EQ(replay(plain, resident_schedule(plain)).peak_requested, 1100);
  EXPECT_EQ(replay(plain, resident_schedule(plain)).step_ns, 61);

  const auto step = unroll(recorded.trace, {{"a"}, {}}, {recompute_a(recorded)});
  ASSERT_TRUE(step.ok()) << step.error().text();
  const StepIndex index(*step);
  ReplayDetail detail;
  const ReplayResult result = replay(index, resident_schedule(index), &detail);
  EXPECT_EQ(result.peak_requested, 700);
  EXPECT_EQ(result.peak_event, event(11));
  EXPECT_EQ(result.step_ns, 72);
  EXPECT_THAT(detail.requested, ElementsAre(0, 100, 100, 100, 500, 600, 600, 200, 200, 200, 200,
                                            700, 200, 200, 200, 200, 200, 200, 600, 600, 700, 700,
                                            700, 600, 600, 600, 600, 600, 200, 200, 100, 0, 0));
  EXPECT_EQ(detail.time[18], 51);
  EXPECT_EQ(detail.time[15], 39);
}

TEST(Unroll, SaysWhereEachRowComesFrom) {
  const TwoUnrolled recorded = two_layers();
  const StepTemplate recompute = recompute_a(recorded);
  const auto step = unroll(recorded.trace, {{"a"}, {}}, {recompute});
  ASSERT_TRUE(step.ok());
  const Trace& trace = step->trace();
  const auto& pieces = recompute.replacements;
  EXPECT_EQ(step->origin(event(1)), (Origin<EventId>{0, event(1)}));
  EXPECT_EQ(step->origin(event(4)),
            (Origin<EventId>{1, EventId(pieces[0].pieces[0].first.value + 2)}));
  EXPECT_EQ(step->origin(event(16)), (Origin<EventId>{1, pieces[1].pieces[0].first}));
  EXPECT_EQ(step->origin(event(32)),
            (Origin<EventId>{0, EventId(recorded.trace.events.size() - 1)}));
  EXPECT_EQ(step->source_name(1), "recompute_all");
  EXPECT_EQ(&step->source(1), recompute.sources[0].trace.get());
  EXPECT_EQ(step->pass(event(4)), Pass::forward);
  EXPECT_EQ(step->pass(event(18)), Pass::recompute);
  EXPECT_EQ(step->pass(event(26)), Pass::backward);
  EXPECT_EQ(step->pass(event(32)), Pass::backward);
  // Ops: forward of a, of b, the re-run, backward of a.
  ASSERT_EQ(trace.ops.size(), 4U);
  EXPECT_EQ(step->origin(OpId(1)), (Origin<OpId>{0, OpId(1)}));
  EXPECT_EQ(step->origin(OpId(2)), (Origin<OpId>{1, OpId(1)}));
  EXPECT_EQ(step->pass(OpId(2)), Pass::recompute);
  EXPECT_EQ(step->pass(OpId(3)), Pass::backward);
  EXPECT_THAT(trace.ops.start, ElementsAre(0, 9, 39, 51));
  // Storages: x, h, y, temporary, h and y2 of the re-run; row 0 of the pass is no row here.
  ASSERT_EQ(trace.storages.size(), 6U);
  EXPECT_EQ(step->origin(StorageId(0)), (Origin<StorageId>{0, recorded.x}));
  EXPECT_EQ(step->origin(StorageId(2)), (Origin<StorageId>{1, StorageId(3)}));
  EXPECT_EQ(step->pass(StorageId(4)), Pass::recompute);
  EXPECT_EQ(step->micro_batch(StorageId(4)), 0);
  // What b reads is what the other pass made.
  EXPECT_EQ(trace.tensors.storage[trace.uses.tensor[0].index()], StorageId(2));
  ASSERT_EQ(trace.saved.size(), 1U);
  EXPECT_EQ(step->origin(SavedId(0)), (Origin<SavedId>{1, SavedId(0)}));
  EXPECT_EQ(step->pass(SavedId(0)), Pass::recompute);
  EXPECT_EQ(trace.string(trace.saved.site[0]), "a#0");
  EXPECT_EQ(trace.saved.storage[0], StorageId(4));
  // Forward, backward: no phase more, the re-run is a part of backward.
  EXPECT_THAT(trace.phases.kind, ElementsAre(PhaseKind::forward, PhaseKind::backward));
  EXPECT_THAT(trace.phases.first_event, ElementsAre(event(0), event(15)));
  EXPECT_THAT(trace.phases.last_event, ElementsAre(event(14), event(32)));
  // The model lets go of x where the re-run's pass says, behind op_end; of the others as recorded.
  EXPECT_EQ(trace.storages.natural_free_event[0], event(27));
  EXPECT_EQ(trace.storages.natural_free_event[4], event(21));
  EXPECT_EQ(trace.storages.free_event[0], event(31));
  EXPECT_EQ(trace.fingerprint, fingerprint(trace));
}

// Offloading what the re-run saves: out and back within backward, with no hazard. The copy out (400
// bytes at 1 byte/ns) may start at the pack (51) and ends at 451; the unpack waits for it and for
// the way back, to 851; then 20 + 1 ns are left.
TEST(Unroll, MovementOnARecomputedStep) {
  const TwoUnrolled recorded = two_layers();
  const auto step = unroll(recorded.trace, {{"a"}, {}}, {recompute_a(recorded)});
  ASSERT_TRUE(step.ok());
  const StepIndex index(*step);
  Decisions decisions = stowage::testing::offload_all(step->trace());
  decisions.saved[0].release.kind = ReleasePoint::Kind::pack;
  decisions.saved[0].reload.kind = ReloadPoint::Kind::unpack;
  const auto lowered = lower(index, decisions);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  ASSERT_EQ(lowered->schedule.stays.size(), 2U);
  EXPECT_THAT(find_hazards(index, lowered->schedule), IsEmpty());
  const ReplayResult result = replay(index, lowered->schedule);
  EXPECT_EQ(result.step_ns, 872);
  EXPECT_EQ(result.stall_ns, 800);
  EXPECT_EQ(result.d2h_bytes, 400);
}

// A layer `a` that saves h of 200 bytes, on a batch of which y is the output.
struct OneLayer {
  Trace trace;
  StorageId x, y;
  EventId forward, forward_end, backward, backward_end;  // of `a`
};

OneLayer one_layer() {
  MicroTrace t;
  OneLayer made;
  const auto next = [&] { return EventId(t.last_event().index() + 1); };
  made.x = t.existing(64, StorageClass::input);
  made.y = t.alloc(100);
  made.forward = next();
  t.begin_layer("a");
  t.begin_op();
  const auto h = t.run(20).alloc(200);
  const auto saved = t.pack(h);
  t.end_op();
  t.let_go(h);
  t.end_layer("a");
  made.forward_end = next();
  t.run(5).backward();
  made.backward = next();
  t.begin_layer_backward("a");
  t.begin_op();
  t.unpack(saved);
  t.run(40).end_op();
  t.free(h);
  t.end_layer_backward("a");
  made.backward_end = next();
  t.optimizer();
  t.run(3).free(made.y);
  made.trace = t.finish();
  return made;
}

// The pass parts: forward and backward of `a` for a half of the batch, h of 104 bytes, 12 and 22
// ns; each part runs right behind its own forward, so the other's h is never there. The executor
// slices the input ahead of each.
StepTemplate a_in_two_parts(const OneLayer& recorded) {
  StepTemplate made;
  made.segment = "a";
  made.parts = 2;
  MicroTrace t;
  const auto next = [&] { return EventId(t.last_event().index() + 1); };
  const auto x = t.existing(64, StorageClass::input);
  Piece part;
  part.source = 0;
  part.first = next();
  t.begin_layer("a");
  t.begin_op();
  t.read(x);
  const auto h = t.run(12).alloc(104);
  const auto saved = t.pack(h);
  t.end_op();
  t.let_go(h);
  t.end_layer("a");
  t.begin_layer_backward("a");
  t.begin_op();
  t.unpack(saved);
  t.run(22).end_op();
  t.free(h);
  t.end_layer_backward("a");
  part.end = next();
  made.sources.push_back({"parts", shared(t.finish()), {{x, recorded.x}}});
  MicroTrace added;
  Piece slice;
  slice.source = 1;
  slice.first = EventId(added.last_event().index() + 1);
  added.begin_op("stowage::slice");
  added.run(2).end_op();
  slice.end = EventId(added.last_event().index() + 1);
  made.sources.push_back({kStowage, shared(added.finish()), {}});
  Replacement forward{recorded.forward, recorded.forward_end, {}};
  for (std::int32_t i = 0; i < 2; ++i) {
    part.instance = slice.instance = i;
    part.micro_batch = slice.micro_batch = i;
    forward.pieces.push_back(slice);
    forward.pieces.push_back(part);
  }
  made.replacements.push_back(forward);
  made.replacements.push_back({recorded.backward, recorded.backward_end, {}});
  return made;
}

// Each half: op_begin and op_end of the slice (2 ns), then 12 ns ahead of the alloc of h and 22
// ahead of the end of its backward; then the 5 ns ahead of backward and 3 of the optimizer.
// As recorded: 300 bytes, 20 + 5 + 40 + 3 = 68 ns. In parts: 100 + 104 bytes, 2 * (2 + 12 + 22) + 5
// + 3 = 80 ns. (Existing: 64 more.)
TEST(Unroll, SegmentInTwoMicroBatches) {
  const OneLayer recorded = one_layer();
  const StepIndex plain(recorded.trace);
  EXPECT_EQ(replay(plain, resident_schedule(plain)).peak_requested, 364);
  EXPECT_EQ(replay(plain, resident_schedule(plain)).step_ns, 68);

  const auto step = unroll(recorded.trace, {{}, {{"a", 2}}}, {a_in_two_parts(recorded)});
  ASSERT_TRUE(step.ok()) << step.error().text();
  const Trace& trace = step->trace();
  const StepIndex index(*step);
  const ReplayResult result = replay(index, resident_schedule(index));
  EXPECT_EQ(result.peak_requested, 268);
  EXPECT_EQ(result.step_ns, 80);
  // Each part has rows of its own, of one site; x is the recording's.
  ASSERT_EQ(trace.saved.size(), 2U);
  EXPECT_EQ(trace.string(trace.saved.site[1]), "a#0");
  EXPECT_EQ(step->micro_batch(SavedId(0)), 0);
  EXPECT_EQ(step->micro_batch(SavedId(1)), 1);
  EXPECT_EQ(step->origin(SavedId(0)), step->origin(SavedId(1)));
  EXPECT_THAT(trace.storages.bytes, ElementsAre(64, 100, 104, 104));
  EXPECT_THAT(trace.saved.storage, ElementsAre(StorageId(2), StorageId(3)));
  EXPECT_EQ(step->origin(StorageId(3)).source, step->origin(StorageId(2)).source);
  for (std::size_t u = 0; u < trace.uses.size(); ++u) {
    EXPECT_EQ(trace.tensors.storage[trace.uses.tensor[u].index()], StorageId(0));
  }
  // slice, a, its backward; twice.
  ASSERT_EQ(trace.ops.size(), 6U);
  EXPECT_EQ(trace.string(trace.ops.name[3]), "stowage::slice");
  EXPECT_EQ(step->source_name(step->origin(OpId(3)).source), kStowage);
  EXPECT_EQ(step->source_name(step->origin(OpId(4)).source), "parts");
  EXPECT_EQ(step->micro_batch(OpId(2)), 0);
  EXPECT_EQ(step->micro_batch(OpId(3)), 1);
  EXPECT_THAT(trace.phases.kind, ElementsAre(PhaseKind::forward, PhaseKind::forward,
                                             PhaseKind::backward, PhaseKind::optimizer));
  EXPECT_THAT(trace.phases.micro_batch, ElementsAre(0, 1, 0, 0));
  EXPECT_EQ(step->pass(StorageId(3)), Pass::forward);
}

// Both halves offloaded at once and loaded on demand. Half 0: pack at 2 + 12 = 14, out until 118,
// back until 222, 22 ns of backward: 244. The same again from there: 488. Then 5 + 3.
TEST(Unroll, MovementOnAStepInParts) {
  const OneLayer recorded = one_layer();
  const auto step = unroll(recorded.trace, {{}, {{"a", 2}}}, {a_in_two_parts(recorded)});
  ASSERT_TRUE(step.ok());
  const StepIndex index(*step);
  Decisions decisions = stowage::testing::offload_all(step->trace());
  for (SavedDecision& row : decisions.saved) {
    row.release.kind = ReleasePoint::Kind::pack;
    row.reload.kind = ReloadPoint::Kind::unpack;
  }
  const auto lowered = lower(index, decisions);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  EXPECT_THAT(find_hazards(index, lowered->schedule), IsEmpty());
  const ReplayResult result = replay(index, lowered->schedule);
  EXPECT_EQ(result.step_ns, 496);
  EXPECT_EQ(result.d2h_bytes, 208);
  EXPECT_EQ(result.host_bytes, 512);  // one slot: the first half is home before the second leaves
}

// The gap that a device row or a sync stands in comes with the event behind it: the kernel between
// the ops with the second one, the 7 ns of the sync with that op's end.
TEST(Unroll, DeviceRowsComeWithTheirGap) {
  MicroTrace t;
  t.begin_op();
  t.run(10).end_op();
  t.kernel(50);
  t.begin_op();
  t.sync(7);
  t.run(3).end_op();
  const Trace trace = t.finish();
  // Events: step_begin, op_begin, op_end, op_begin, op_end, step_end. The second op first.
  StepTemplate swapped;
  swapped.segment = kWholeStep;
  swapped.parts = 2;
  Piece later;
  later.first = event(3);
  later.end = event(5);
  Piece sooner;
  sooner.first = event(1);
  sooner.end = event(3);
  swapped.replacements.push_back({event(1), event(5), {later, sooner}});
  const auto step = unroll(trace, kWholeInParts, {swapped});
  ASSERT_TRUE(step.ok()) << step.error().text();
  EXPECT_THAT(step->trace().events.time, ElementsAre(0, 0, 10, 10, 20, 20));
  EXPECT_THAT(step->trace().syncs.event, ElementsAre(event(1)));
  EXPECT_THAT(step->trace().gpu.event, ElementsAre(event(0)));
  EXPECT_THAT(step->trace().gpu.start, ElementsAre(0));
  const StepIndex index(*step);
  EXPECT_TRUE(index.syncs_at(2));
  EXPECT_EQ(index.launch_ns()[2], 3);
  EXPECT_EQ(index.compute_ns(1), 50);
}

// A view of y that `a` saves and that is saved again behind it: where `a` does not save, the second
// one still is a view of y, which the other pass makes.
TEST(Unroll, TensorThatOthersNeedIsThere) {
  MicroTrace t;
  const auto build = [](MicroTrace& of, bool saves, Piece& piece) {
    piece.first = event(of.last_event().index() + 1);
    of.begin_layer("a");
    const auto y = of.alloc(100);
    const auto view = of.view(y, 5, 20);
    const SavedId saved = saves ? of.pack(view) : SavedId();
    of.end_layer("a");
    piece.end = event(of.last_event().index() + 1);
    return std::tuple(y, view, saved);
  };
  Piece then;
  const auto [y, view, inner] = build(t, true, then);
  EXPECT_TRUE(inner.valid());
  const auto saved = t.pack(view);
  t.backward();
  t.unpack(saved);
  t.free(y);
  const Trace trace = t.finish();
  MicroTrace pass;
  Piece now;
  const auto remade = std::get<0>(build(pass, false, now));
  pass.free(remade);
  now.source = 0;
  StepTemplate of;
  of.segment = "a";
  of.sources.push_back({"recompute_all", shared(pass.finish()), {{remade, y}}});
  of.replacements.push_back({then.first, then.end, {now}});
  const auto step = unroll(trace, {{"a"}, {}}, {of});
  ASSERT_TRUE(step.ok()) << step.error().text();
  ASSERT_EQ(step->trace().saved.size(), 1U);
  const TensorId tensor = step->trace().saved.tensor[0];
  ASSERT_TRUE(tensor.valid());
  EXPECT_EQ(step->trace().tensors.offset[tensor.index()], 5);
  EXPECT_EQ(step->trace().tensors.storage[tensor.index()], StorageId(0));
  EXPECT_EQ(step->origin(StorageId(0)), (Origin<StorageId>{1, remade}));
}

std::string error_of(const Trace& trace, const Structure& structure,
                     const std::vector<StepTemplate>& templates) {
  const auto step = unroll(trace, structure, templates);
  return step.ok() ? "none" : step.error().text();
}

TEST(Unroll, StructureThatCannotBe) {
  const TwoUnrolled recorded = two_layers();
  const std::vector<StepTemplate> known{recompute_a(recorded)};
  const auto error = [&](const Structure& structure) {
    return error_of(recorded.trace, structure, known);
  };
  EXPECT_EQ(error({{"b"}, {}}),
            "the recording does not say what happens with recompute of segment 'b' (record it with "
            "the pass recompute_all)");
  EXPECT_EQ(error({{}, {{"a", 3}}}),
            "the recording does not say what happens with segment 'a' in 3 parts (record it with "
            "the pass parts, for 3 parts)");
  EXPECT_THAT(error({{}, {{"*", 4}}}), HasSubstr("segment '*' in 4 parts"));
  EXPECT_EQ(error({{}, {{"a", 0}}}), "segment 'a' cannot run in 0 parts");
  EXPECT_EQ(error({{"stepp"}, {}}), "the recording has no layer 'stepp' (did you mean 'step'?)");
  EXPECT_THAT(error({{"a@2"}, {}}), HasSubstr("recompute of segment 'a@2'"));
  EXPECT_EQ(error({{"a", "a"}, {}}),
            "recompute of segment 'a' and recompute of segment 'a' replace the same events");
}

TEST(Unroll, TemplateThatIsNoStep) {
  const TwoUnrolled recorded = two_layers();
  const auto error = [&](auto&& change) {
    StepTemplate of = recompute_a(recorded);
    change(of);
    return error_of(recorded.trace, {{"a"}, {}}, {of});
  };
  EXPECT_EQ(error([](StepTemplate&) {}), "none");
  EXPECT_THAT(
      error([](StepTemplate& of) { of.sources[0].storages.erase(of.sources[0].storages.begin()); }),
      HasSubstr("none"));  // nothing of the pieces touches x
  EXPECT_THAT(
      error([](StepTemplate& of) { of.sources[0].storages.pop_back(); }),
      HasSubstr("tensor 1 of pass 'step' is of storage 2, which is not in the step: no piece"));
  EXPECT_THAT(error([](StepTemplate& of) { of.replacements.pop_back(); }),
              HasSubstr("storage 1 of pass 'step', which its event 20 needs, is not in the step"));
  EXPECT_THAT(error([](StepTemplate& of) {
                Piece& backward = of.replacements[1].pieces[1];
                backward.instance = 1;
                backward.end.value = backward.first.value + 4;  // up to its op_end
              }),
              HasSubstr("unpack 0 of pass 'recompute_all' is of a saved tensor that no piece"));
  EXPECT_THAT(error([](StepTemplate& of) { of.replacements[1].pieces.pop_back(); }),
              HasSubstr("of pass 'recompute_all' is freed there, and by no piece of the step"));
  EXPECT_THAT(error([](StepTemplate& of) {
                of.replacements[1].pieces.push_back(of.replacements[1].pieces[0]);
              }),
              HasSubstr("is in two pieces of one instance"));
  EXPECT_THAT(error([](StepTemplate& of) {
                Piece other = of.replacements[0].pieces[0];
                other.instance = 1;
                of.replacements[0].pieces.push_back(other);
              }),
              HasSubstr("storage 2 of the recording is made twice in the step"));
  EXPECT_THAT(error([](StepTemplate& of) { of.replacements[1].end.value = 1000; }),
              HasSubstr("recompute of segment 'a' replaces events"));
  EXPECT_THAT(error([](StepTemplate& of) { of.replacements[0].first = event(0); }),
              HasSubstr("recompute of segment 'a' replaces events 0 up to"));
  EXPECT_THAT(error([](StepTemplate& of) { of.replacements[0].pieces[0].end.value = 1000; }),
              HasSubstr("a piece is of events"));
  EXPECT_THAT(error([](StepTemplate& of) { of.replacements[0].pieces[0].source = 1; }),
              HasSubstr("a piece is of source 1, instance 0, which is none"));
  EXPECT_THAT(error([](StepTemplate& of) { of.sources[0].trace = nullptr; }),
              HasSubstr("source 'recompute_all' has no trace"));
  EXPECT_THAT(error([](StepTemplate& of) { of.sources[0].storages[0].first = StorageId(99); }),
              HasSubstr("storage 99 of pass 'recompute_all' stands for storage"));
  EXPECT_THAT(
      error([](StepTemplate& of) { of.sources[0].storages.push_back(of.sources[0].storages[0]); }),
      HasSubstr("stands for two of the recording"));
  // The end of the step within it.
  EXPECT_THAT(error([](StepTemplate& of) {
                const std::size_t events = of.sources[0].trace->events.size();
                Piece end = of.replacements[1].pieces[0];
                end.first = EventId(events - 1);
                end.end = EventId(events);
                of.replacements[1].pieces.push_back(end);
              }),
              HasSubstr("the step under this structure: /events/kind/"));
}

}  // namespace
}  // namespace stowage::simulator
