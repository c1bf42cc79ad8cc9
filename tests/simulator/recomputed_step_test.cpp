// Segments that run again: the events, lifetimes and times of small steps, derived by hand.
#include "simulator/step/recomputed_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/segments.h"
#include "simulator/step/step_index.h"
#include "simulator/step/unroll.h"
#include "tests/support/event_texts.h"
#include "tests/support/micro_trace.h"
#include "tests/support/two_layers.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;
using testing::texts_of;
using testing::TwoLayers;

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

SavedRule rule_of(const char* site, Decision decision) {
  SavedRule rule;
  rule.site = site;
  rule.decision = decision;
  return rule;
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

// Layer "a" is a linear under autocast: it casts its bias (into 40 bytes), which nobody saves, and
// multiplies its input x (100 bytes) into y (200). The cast is autocast's until forward is over, or
// until `late`, within backward.
struct CastStep {
  MicroTrace t;

  explicit CastStep(bool late = false) {
    const StorageId bias = t.existing(80);
    const StorageId x = t.alloc(100);
    const TensorId input = t.view(x);
    t.begin_layer("a");
    t.passed(input);
    t.begin_composite_op("aten::linear");
    t.begin_op("aten::_to_copy");
    t.read(bias);
    const StorageId cast = t.alloc(40);
    t.end_op();
    t.begin_op("aten::addmm");
    t.read(cast);
    const SavedId saved_x = t.pack(x);
    const StorageId y = t.alloc(200);
    t.end_op();
    t.end_op();
    t.end_layer("a");
    t.passed(t.view(y));
    t.let_go(x);
    t.begin_op("loss");
    const SavedId saved_y = t.pack(y);
    t.end_op();
    t.let_go(y);
    if (!late) t.free(cast);
    t.backward();
    t.drop(t.unpack(saved_y));
    t.run(10);
    t.free(y);
    t.drop(t.unpack(saved_x));
    t.free(x);
    if (late) t.begin_op("aten::mm"), t.end_op(), t.free(cast);
  }
};

// Where the run stops, inside of the linear that has made the cast, all ops end first and then
// autocast lets go of it: an op's own tensor would have died with that.
TEST(RecomputedStep, WhatAutocastKeepsDiesBehindTheRunsOps) {
  CastStep cast;
  const Trace trace = cast.t.finish();
  const RecomputedStep step = recomputed(trace, {"a"});
  ASSERT_TRUE(validate(step.trace, "").ok());
  const std::vector<std::string> texts = texts_of(step.trace);
  const auto begin = std::find(texts.begin(), texts.end(), "recompute_begin a");
  const auto end = std::find(texts.begin(), texts.end(), "recompute_end a");
  ASSERT_LT(begin, end);
  const std::vector<std::string> expected = {
      "recompute_begin a",     "layer_forward_begin a",   "unpack a#in0 of pack 0",
      "op_begin aten::linear", "op_begin aten::_to_copy", "alloc 40",
      "op_end aten::_to_copy", "op_begin aten::addmm",    "pack a#0",
      "op_end aten::addmm",    "op_end aten::linear",     "free 40",
      "layer_forward_end a"};
  EXPECT_EQ(std::vector<std::string>(begin, end), expected);
}

// In a tail that runs in parts backward begins within autocast, which has the cast already.
TEST(Segments, DoNotRunAgainWhereAutocastStillHasTheirCasts) {
  CastStep cast(/*late=*/true);
  const Trace trace = cast.t.finish();
  const Result<Segment> segment = SegmentFinder(trace).find("a");
  ASSERT_FALSE(segment.ok());
  EXPECT_EQ(segment.error().code, ErrorCode::bad_input);
  EXPECT_NE(segment.error().text().find("autocast still has that cast"), std::string::npos)
      << segment.error().text();
}

// x (100 bytes) is saved by an op of the model and by layer "a", which gives it up. The op's node
// comes last and casts behind its use of x: until that is over autograd has x.
TEST(RecomputedStep, WhatIsSavedOutsideDiesWithTheNodeThatSavedIt) {
  MicroTrace t;
  const StorageId x = t.alloc(100);
  t.begin_op("mul");
  const SavedId outside = t.pack(x);
  t.end_op();
  const TensorId input = t.view(x);
  t.begin_layer("a");
  t.passed(input);
  t.begin_op("exp");
  const SavedId inside = t.pack(x);
  const StorageId y = t.alloc(200);
  t.end_op();
  t.end_layer("a");
  t.passed(t.view(y));
  t.let_go(x);
  t.free(y);
  t.backward();
  t.drop(t.unpack(inside));
  const UnpackId last = t.unpack(outside);
  t.begin_op("mul_backward");
  t.end_op();
  t.drop(last);
  t.begin_op("aten::to");
  t.end_op();
  t.free(x);
  const Trace trace = t.finish();
  const RecomputedStep step = recomputed(trace, {"a"});
  ASSERT_TRUE(validate(step.trace, "").ok());
  const std::vector<std::string> texts = texts_of(step.trace);
  const auto free = std::find(texts.begin(), texts.end(), "free 100");
  ASSERT_NE(free, texts.end());
  EXPECT_EQ(*std::prev(free), "op_end aten::to");
}

TEST(RecomputedStep, TakesAsMuchLongerAsTheRunTakes) {
  SmallStep small;
  const Trace trace = small.t.finish();
  const RecomputedStep step = recomputed(trace, {"a"});
  // Ahead of the mul 10, in it 10 and 10, ahead of the exp 10.
  EXPECT_EQ(step.trace.events.time.back(), trace.events.time.back() + 40);
}

TEST(RecomputedStep, SaysWhichRowsAreWhose) {
  SmallStep small;
  const Trace trace = small.t.finish();
  const Result<Step> step = unroll(trace, Structure{{"a"}, {}, true});
  ASSERT_TRUE(step.ok()) << step.error().text();
  ASSERT_EQ(step->segments().size(), 1U);
  const SegmentRows& rows = step->segments().front();
  EXPECT_EQ(rows.inputs, (std::vector{SavedId(0)}));
  EXPECT_EQ(rows.saved, (std::vector{SavedId(1), SavedId(2)}));
  EXPECT_EQ(rows.again, (std::vector{SavedId(4), SavedId(5)}));
  EXPECT_FALSE(step->is_of_segment(SavedId(0)));  // what it is given may leave
  EXPECT_TRUE(step->is_of_segment(SavedId(1)));
  EXPECT_FALSE(step->is_of_segment(SavedId(3)));  // the loss's
  EXPECT_TRUE(step->is_of_segment(SavedId(5)));
  EXPECT_EQ(step->pass(SavedId(2)), Pass::forward);
  EXPECT_EQ(step->pass(SavedId(5)), Pass::recompute);
  EXPECT_EQ(step->origin(SavedId(5)).row, SavedId(1));
  EXPECT_FALSE(step->origin(SavedId(0)).row.valid());
  // x, y and z, and y again.
  const Trace& tables = step->trace();
  ASSERT_EQ(tables.storages.size(), 4U);
  EXPECT_EQ(step->origin(StorageId(3)).row, StorageId(1));
  EXPECT_EQ(tables.saved.storage[4], StorageId(0));  // x itself
  EXPECT_EQ(tables.saved.storage[5], StorageId(3));
}

// What the segment is given leaves behind its forward, and comes back for the run.
TEST(RecomputedStep, ItsInputIsATenantLikeAnyOther) {
  SmallStep small;
  const Trace trace = small.t.finish();
  const Result<Step> step = unroll(trace, Structure{{"a"}, {}, true});
  ASSERT_TRUE(step.ok());
  const StepIndex index(*step);
  Decisions decisions;
  decisions.saved.resize(index.trace().saved.size());
  // Those of the segment are nobody's to move.
  for (SavedDecision& each : decisions.saved) each.decision = Decision::offload;
  decisions.saved[3].decision = Decision::keep;
  decisions.saved[0].reload.kind = ReloadPoint::Kind::unpack;
  const Result<Lowering> lowered = lower(index, decisions);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
  ASSERT_EQ(lowered->schedule.tenants.size(), 1U);
  EXPECT_EQ(lowered->schedule.tenants[0].bytes, 100);
  EXPECT_EQ(lowered->schedule.tenants[0].saved, std::vector<SavedId>{SavedId(0)});
  // Kept: x 100, y 200, z 300 in forward. In backward, of both: x and y again, 300.
  EXPECT_EQ(replay(index, resident_schedule(index)).peak_requested, 600);
}

TEST(RecomputedStep, ARuleOnWhatASegmentOwnsIsRefused) {
  SmallStep small;
  const Trace trace = small.t.finish();
  Plan plan;
  plan.recompute = {{"a"}};
  const Result<Step> step = unroll(trace, plan);
  ASSERT_TRUE(step.ok());
  const StepIndex index(*step);
  const auto with = [&](const char* site) {
    plan.saved = {rule_of(site, Decision::offload)};
    const Result<Lowering> lowered = lower(index, plan);
    return lowered ? std::string() : lowered.error().text();
  };
  EXPECT_NE(with("a#[0-1]").find("belong to segments that run again"), std::string::npos);
  EXPECT_EQ(with("a#in0"), "");
  EXPECT_EQ(with("*"), "");
  EXPECT_NE(with("b#in0").find("the nearest site is a#in0"), std::string::npos);
  // Where nothing runs again in the step, the plan is another one's.
  plan.saved.clear();
  const Result<Lowering> plain = lower(StepIndex(trace), plan);
  ASSERT_FALSE(plain.ok());
  EXPECT_EQ(plain.error().pointer, "/recompute");
}

// What a segment is given is its rule's to decide, unless a saved rule names it; where its rule
// says nothing, any saved rule decides.
TEST(RecomputedStep, TheBoundaryOfARuleGoesAheadOfSavedRulesThatDoNotNameIt) {
  SmallStep small;
  const Trace trace = small.t.finish();
  const auto given = [&](std::optional<Decision> boundary, std::vector<SavedRule> saved) {
    Plan plan;
    plan.recompute = {{"a", 1, boundary}};
    plan.saved = std::move(saved);
    const Result<Step> step = unroll(trace, plan);
    if (!step) return std::string(step.error().text());
    const Result<Decisions> decisions = resolve(step->trace(), plan);
    if (!decisions) return std::string(decisions.error().text());
    return std::string(name_of(decisions->saved[0].decision));
  };
  const SavedRule all_stay = rule_of("*", Decision::keep);
  const SavedRule all_leave = rule_of("*", Decision::offload);
  EXPECT_EQ(given({}, {}), "keep");
  EXPECT_EQ(given({}, {all_leave}), "offload");
  EXPECT_EQ(given(Decision::offload, {}), "offload");
  EXPECT_EQ(given(Decision::offload, {all_stay}), "offload");
  EXPECT_EQ(given(Decision::keep, {all_leave}), "keep");
  EXPECT_EQ(given(Decision::offload, {all_stay, rule_of("a#in0", Decision::keep)}), "keep");
  EXPECT_EQ(given(Decision::keep, {all_leave, rule_of("*#in*", Decision::offload)}), "offload");
  // The plan of a file, as its text says it.
  const Result<Plan> read = plan_from_json(R"({"schema": "stowage-plan/1",
      "saved": [{"site": "*", "do": "offload"}],
      "recompute": [{"segment": "a", "boundary": "keep"}]})",
                                           "p.json");
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->recompute[0].boundary, Decision::keep);
  EXPECT_EQ(given(read->recompute[0].boundary, read->saved), "keep");
}

TEST(RecomputedStep, NothingMovesWhatASegmentWithinAnotherIsGiven) {
  TwoLayers two;
  const Trace trace = two.finish();
  Plan plan;
  plan.recompute = {{"*", RecomputeRule::kAll, Decision::keep, {{"b"}}}};
  plan.saved = {rule_of("b#in0", Decision::offload)};
  const Result<Step> step = unroll(trace, plan);
  ASSERT_TRUE(step.ok()) << step.error().text();
  const Result<Lowering> lowered = lower(StepIndex(*step), plan);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().pointer, "/saved/0");
  EXPECT_NE(lowered.error().message.find("b#in0 is what a segment within another is given"),
            std::string::npos);
}

TEST(Segments, LayersOneBehindTheOtherAreOne) {
  TwoLayers two;
  const Trace trace = two.finish();
  const Result<Segment> both = SegmentFinder(trace).find("a..b");
  ASSERT_TRUE(both.ok()) << both.error().text();
  EXPECT_EQ(both->calls, 2);
  EXPECT_EQ(both->inputs.size(), 1U);
  EXPECT_EQ(both->saved.size(), 2U);
  const RecomputedStep step = recomputed(trace, {"a..b"});
  // One run of both, ahead of b's; y (100) is not there in between.
  const auto texts = texts_of(step.trace);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "recompute_begin a"), 1);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "layer_forward_begin b"), 2);
  EXPECT_TRUE(validate(step.trace, "").ok());
}

// "b" lies in "a..b": that one's run makes what "b" is given and stops there; then "b" runs.
TEST(NestedSegments, TheInnerOneRunsBehindTheOuterOne) {
  TwoLayers two;
  const Trace trace = two.finish();
  const Result<Step> step = unroll(trace, Structure{{"b", "a..b"}, {}, true});
  ASSERT_TRUE(step.ok()) << step.error().text();
  const std::vector<std::string> expected = {
      "step_begin",
      "alloc 100",
      "layer_forward_begin a",
      "pack a#in0",
      "op_begin mul",
      "pack a#0",
      "alloc 100",
      "op_end mul",
      "layer_forward_end a",
      "layer_forward_begin b",
      "pack b#in0",
      "op_begin mul",
      "pack b#0",
      "alloc 100",
      "op_end mul",
      "layer_forward_end b",
      "free 100",  // what a returned: nobody holds it
      "backward_begin",
      "recompute_begin a",
      "layer_forward_begin a",
      "unpack a#in0 of pack 0",
      "op_begin mul",
      "pack a#0",
      "alloc 100",
      "op_end mul",
      "layer_forward_end a",
      "layer_forward_begin b",
      "pack b#in0",
      "layer_forward_end b",
      "recompute_end a",
      "recompute_begin b",
      "layer_forward_begin b",
      "unpack b#in0 of pack 5",
      "op_begin mul",
      "pack b#0",
      "op_end mul",
      "layer_forward_end b",
      "recompute_end b",
      "unpack b#0 of pack 6",
      "free 100",
      "unpack a#0 of pack 4",
      "free 100",
      "free 100",
      "step_end",
  };
  EXPECT_EQ(texts_of(step->trace()), expected);
  ASSERT_EQ(step->segments().size(), 2U);
  const SegmentRows& outer = step->segments()[0];
  const SegmentRows& inner = step->segments()[1];
  EXPECT_EQ(outer.name, "a..b");
  EXPECT_EQ(outer.saved, (std::vector{SavedId(1), SavedId(2), SavedId(3)}));
  EXPECT_EQ(outer.again, (std::vector{SavedId(4), SavedId(5)}));
  EXPECT_EQ(inner.name, "b");
  EXPECT_EQ(inner.inputs, (std::vector{SavedId(5)}));
  EXPECT_EQ(inner.saved, (std::vector{SavedId(3)}));
  EXPECT_EQ(inner.again, (std::vector{SavedId(6)}));
  EXPECT_LT(outer.run_end, inner.run_begin);
  // What the inner run saves is what the outer one's run made.
  const Trace& tables = step->trace();
  EXPECT_EQ(tables.saved.storage[6], tables.saved.storage[5]);
  EXPECT_EQ(step->origin(tables.saved.storage[6]).row, trace.saved.storage[1]);
  EXPECT_NE(tables.saved.storage[6], tables.saved.storage[3]);
  EXPECT_EQ(step->origin(SavedId(6)).row, SavedId(1));
  EXPECT_EQ(step->pass(SavedId(6)), Pass::recompute);
}

// s (100 bytes) is saved by "o", in which "o.i" lies, and by "c" behind it, and the model has it
// until forward is over. All of them run again: nothing but what their runs save holds s in
// backward, so it dies with its last use, though a node that saved it itself, as o's in the
// recording, has it until its cast is over too.
TEST(NestedSegments, WhatTheyGaveUpHoldsNothing) {
  MicroTrace t;
  const StorageId s = t.alloc(100);
  const StorageId x = t.alloc(40);
  t.begin_layer("o");
  t.passed(t.view(x));
  t.begin_op("mul");
  t.read(s);
  const SavedId of_o = t.pack(s);
  const StorageId y = t.alloc(200);
  t.end_op();
  t.begin_layer("o.i");
  t.passed(t.view(y));
  t.begin_op("exp");
  const SavedId of_i = t.pack(y);
  const StorageId z = t.alloc(300);
  t.end_op();
  t.end_layer("o.i");
  t.passed(t.view(z));
  t.let_go(y);
  t.end_layer("o");
  t.passed(t.view(z));
  t.begin_layer("c");
  t.passed(t.view(z));
  t.begin_op("mul");
  t.read(s);
  const SavedId of_c = t.pack(s);
  const StorageId w = t.alloc(400);
  t.end_op();
  t.end_layer("c");
  t.passed(t.view(w));
  for (const StorageId each : {x, z, w}) t.free(each);
  t.let_go(s);
  t.backward();
  t.drop(t.unpack(of_c));
  t.drop(t.unpack(of_i));
  t.free(y);
  const UnpackId last = t.unpack(of_o);
  t.begin_op("mul_backward");
  t.end_op();
  t.drop(last);
  t.begin_op("aten::to");
  t.end_op();
  t.free(s);
  const Trace trace = t.finish();
  const auto event_of_free = [&](const Structure& structure) -> std::string {
    const Result<Step> step = unroll(trace, structure);
    EXPECT_TRUE(step.ok()) << (step ? "" : step.error().text());
    if (!step) return {};
    const std::vector<std::string> texts = texts_of(step->trace());
    const auto free = std::find(texts.begin(), texts.end(), "free 100");
    return free == texts.end() ? "never" : *std::prev(free);
  };
  EXPECT_EQ(event_of_free({{"c", "o.i"}, {}, true}), "op_end aten::to");
  EXPECT_EQ(event_of_free({{"c", "o", "o.i"}, {}, true}), "op_end mul_backward");
}

TEST(NestedSegments, BothMayBeginWithTheSameCall) {
  TwoLayers two;
  const Trace trace = two.finish();
  const Result<Step> step = unroll(trace, Structure{{"a..b", "a"}, {}, true});
  ASSERT_TRUE(step.ok()) << step.error().text();
  const std::vector<std::string> texts = texts_of(step->trace());
  // The outer one's input is the first.
  EXPECT_EQ(texts[3], "pack a#in0");
  EXPECT_EQ(texts[4], "pack a#in1");
  EXPECT_EQ(step->segments()[0].name, "a..b");
  EXPECT_EQ(step->segments()[0].inputs, (std::vector{SavedId(0)}));
  const SavedId given = step->segments()[1].inputs.front();
  EXPECT_EQ(step->trace().string(step->trace().saved.site[given.index()]), "a#in1");
  EXPECT_EQ(step->pass(given), Pass::recompute);
}

TEST(NestedSegments, SayWhyTheyCannotRunAgain) {
  TwoLayers two;
  const Trace trace = two.finish();
  const auto why = [&](std::vector<std::string> names) {
    const Result<Step> step = unroll(trace, Structure{std::move(names), {}, true});
    return step ? std::string("they can") : step.error().text();
  };
  EXPECT_NE(why({"a", "a"}).find("'a' and 'a' overlap: they are the same calls"),
            std::string::npos);
  EXPECT_NE(why({"b", "a", "a"}).find("/recompute/2"), std::string::npos);
  EXPECT_EQ(why({"a", "b", "a..b"}), "they can");
  EXPECT_NE(why({"a", "b", "a..b", "a..b"}).find("they are the same calls"), std::string::npos);
}

TEST(Segments, SayWhyTheyCannotRunAgain) {
  TwoLayers two;
  const Trace trace = two.finish();
  const auto why = [](const Trace& of, const std::string& name) {
    const Result<Segment> segment = SegmentFinder(of).find(name);
    return segment ? std::string("it can") : segment.error().text();
  };
  EXPECT_NE(why(trace, "c").find("has no layer call 'c'"), std::string::npos);
  EXPECT_NE(why(trace, "b..a").find("does not come behind"), std::string::npos);
  Trace other = trace;
  other.layer_tensors = {};
  EXPECT_NE(why(other, "a")
                .find("does not say what its layers are given (record the model again, "
                      "with layers that are callables)"),
            std::string::npos);
  other.schema.minor = 1;
  EXPECT_NE(why(other, "a")
                .find("the recording is of schema 1.1, before 1.7: it does not say what "
                      "its layers are given (record the step again)"),
            std::string::npos)
      << why(other, "a");
  other = trace;
  other.layer_tensors.event.resize(2);
  other.layer_tensors.tensor.resize(2);
  other.layer_tensors.requires_grad.resize(2);
  EXPECT_NE(why(other, "b").find("is no callable"), std::string::npos);
  other = trace;
  other.layer_tensors.tensor[2] = other.layer_tensors.tensor[0];
  EXPECT_NE(why(other, "a..b").find("not given exactly what 'a' returns"), std::string::npos);
  // b writes its input, which a returned.
  TwoLayers writing;
  const Trace written = writing.finish(true);
  EXPECT_NE(why(written, "b").find("writes what it did not make"), std::string::npos);
  EXPECT_EQ(why(written, "a"), "it can");  // y is made again
  // Statistics that a normalisation keeps, which its schema does not say.
  MicroTrace normed;
  const StorageId mean = normed.existing(8, StorageClass::buffer);
  const StorageId in = normed.alloc(8);
  const TensorId normed_in = normed.view(in);
  normed.begin_layer("a");
  normed.passed(normed_in);
  normed.begin_op("aten::batch_norm");
  normed.read(in);
  normed.read(mean);
  const SavedId saved = normed.pack(in);
  normed.end_op();
  normed.end_layer("a");
  normed.backward();
  normed.drop(normed.unpack(saved));
  normed.free(in);
  EXPECT_NE(why(normed.finish(), "a").find("running statistics twice"), std::string::npos);
  MicroTrace unused;
  const StorageId x = unused.alloc(8);
  const TensorId given = unused.view(x);
  unused.begin_layer("a");
  unused.passed(given);
  static_cast<void>(unused.pack(x));
  unused.end_layer("a");
  unused.backward();
  unused.free(x);
  EXPECT_NE(why(unused.finish(), "a").find("nothing that it saves is asked for"),
            std::string::npos);
}

}  // namespace
}  // namespace stowage::simulator
