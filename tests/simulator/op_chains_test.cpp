// Chains of single ops that make saved tensors again: which there are, what they hold, and the
// steps that come of them, derived by hand.
#include "simulator/step/op_chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/step_index.h"
#include "simulator/step/unroll.h"
#include "tests/support/event_texts.h"
#include "tests/support/micro_trace.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MicroTrace;
using testing::texts_of;

// In layer "a": y (200) is the silu of x (100), which nobody saves; z (400) is y times y, with a
// temporary (50) inside. y and z are saved, and in backward z is asked for first.
struct TwoOps {
  MicroTrace t;
  StorageId x, y, z;

  explicit TwoOps(bool saves_x = false, const std::string& first = "aten::silu",
                  bool writes_y = false, bool writes_x = false) {
    t.begin_layer("a");
    t.begin_op("aten::linear");
    x = t.alloc(100);
    t.end_op();
    t.run(10).begin_op(first);
    t.read(x);
    const SavedId saved_x = saves_x ? t.pack(x) : SavedId();
    t.run(10);
    y = t.alloc(200);
    t.run(10).end_op();
    if (!saves_x) t.free(x);
    t.run(10).begin_op("aten::mul");
    t.read(y);
    const SavedId saved_y = t.pack(y);
    t.run(10);
    const StorageId inside = t.alloc(50);
    t.run(10);
    z = t.alloc(400);
    t.free(inside);
    t.run(10).end_op();
    t.let_go(y);
    if (writes_y || writes_x) {
      t.begin_op("aten::add_");
      t.write(writes_y ? y : x);
      t.end_op();
    }
    if (saves_x) t.let_go(x);
    t.run(10).begin_op("aten::linear");
    t.read(z);
    const SavedId saved_z = t.pack(z);
    t.end_op();
    t.let_go(z);
    t.end_layer("a");
    t.backward();
    t.drop(t.unpack(saved_z));
    t.run(10);
    t.free(z);
    t.drop(t.unpack(saved_y));
    t.run(10);
    t.free(y);
    if (!saves_x) return;
    t.drop(t.unpack(saved_x));
    t.free(x);
  }
};

Structure by_ops(std::vector<std::string> sites) {
  Structure structure;
  structure.ops = std::move(sites);
  return structure;
}

TEST(OpChains, MakeAgainBehindWhatTheyAreGiven) {
  TwoOps two;
  const Trace trace = two.t.finish();
  const Result<Step> step = unroll(trace, by_ops({"a#0", "a#1"}));
  ASSERT_TRUE(step.ok()) << step.error().text();
  EXPECT_THAT(texts_of(step->trace()),
              ElementsAre("step_begin", "layer_forward_begin a", "op_begin aten::linear",
                          "alloc 100", "op_end aten::linear", "op_begin aten::silu",
                          "pack a#in0",  // x is held
                          "alloc 200", "op_end aten::silu", "op_begin aten::mul", "pack a#0",
                          "alloc 50", "alloc 400", "free 50", "op_end aten::mul",
                          "free 200",  // y is given up
                          "op_begin aten::linear", "pack a#1", "op_end aten::linear",
                          "free 400",  // and z
                          "layer_forward_end a", "backward_begin", "recompute_begin a",
                          "unpack a#in0 of pack 0", "op_begin aten::silu", "alloc 200",
                          "op_end aten::silu", "pack a#0", "op_begin aten::mul", "alloc 50",
                          "alloc 400", "free 50", "op_end aten::mul", "pack a#1",
                          "free 100",  // x, with the run
                          "recompute_end a", "unpack a#1 of pack 4", "free 400",
                          "unpack a#0 of pack 3", "free 200", "step_end"));
  EXPECT_TRUE(validate(step->trace(), "").ok());
  // The ops take as long again: 20 and 30.
  EXPECT_EQ(step->trace().events.time.back(), trace.events.time.back() + 50);
  ASSERT_EQ(step->segments().size(), 1U);
  const SegmentRows& rows = step->segments().front();
  EXPECT_TRUE(rows.is_chain());
  EXPECT_EQ(rows.name, "a#1");
  EXPECT_EQ(rows.saved.size(), 2U);
  EXPECT_EQ(rows.again.size(), 2U);
  EXPECT_EQ(structure_of(*step), by_ops({"a#0", "a#1"}));
}

// Of what the chain makes on its way, only what was named is kept.
TEST(OpChains, AnotherSavedTensorIsReadWhereItIs) {
  TwoOps two;
  const Trace trace = two.t.finish();
  const Result<Step> step = unroll(trace, by_ops({"a#1"}));
  ASSERT_TRUE(step.ok()) << step.error().text();
  const std::vector<std::string> texts = texts_of(step->trace());
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "op_begin aten::silu"), 1);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "op_begin aten::mul"), 2);
  ASSERT_EQ(step->segments().size(), 1U);
  ASSERT_EQ(step->segments().front().inputs.size(), 1U);
  const StorageId input =
      step->trace().saved.storage[step->segments().front().inputs.front().index()];
  EXPECT_EQ(step->origin(input).row, two.y);
  // y 200 is there all along, z 400 twice.
  EXPECT_EQ(replay(StepIndex(*step), resident_schedule(StepIndex(*step))).peak_requested, 650);
}

TEST(OpChains, WhatTheyAreGivenLeavesAndComesBack) {
  TwoOps two;
  const Trace trace = two.t.finish();
  const Result<Plan> plan = plan_from_json(R"({"schema": "stowage-plan/1", "saved": [
    {"site": "a#[0-1]", "do": "recompute", "by": "ops"},
    {"site": "a#in0", "do": "offload"}]})",
                                           "p.json");
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  const Result<Step> step = unroll(trace, *plan);
  ASSERT_TRUE(step.ok()) << step.error().text();
  const StepIndex index(*step);
  const Result<Lowering> lowered = lower(index, *plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  ASSERT_EQ(lowered->schedule.tenants.size(), 1U);
  EXPECT_EQ(lowered->schedule.tenants[0].bytes, 100);
  EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
}

// In a composed op y (200) is made of x (100), then x is added to it in place; y is saved.
Trace written_in_place(const std::string& writer, bool is_inner = true) {
  MicroTrace t;
  t.begin_layer("a");
  t.begin_op("aten::linear");
  const StorageId x = t.alloc(100);
  t.end_op();
  t.begin_composite_op("aten::attention");
  t.read(x);
  t.run(10).begin_op("aten::bmm");
  t.read(x);
  const StorageId y = t.alloc(200);
  t.run(20).end_op();
  t.begin_composite_op(writer + "_of_composed");
  t.write(y);
  if (is_inner) {
    t.begin_op(writer);
    t.read(x);
    t.write(y);
    t.run(30).end_op();
  }
  t.end_op();
  t.end_op();
  t.free(x);
  const SavedId saved = t.pack(y);
  t.let_go(y);
  t.end_layer("a");
  t.backward();
  t.drop(t.unpack(saved));
  t.free(y);
  return t.finish();
}

TEST(OpChains, RunOpsOfAComposedOpAndWhatTheyWriteInPlace) {
  const Trace trace = written_in_place("aten::add_");
  const Result<Step> step = unroll(trace, by_ops({"a#0"}));
  ASSERT_TRUE(step.ok()) << step.error().text();
  EXPECT_TRUE(validate(step->trace(), "").ok());
  const std::vector<std::string> texts = texts_of(step->trace());
  const auto begin = std::find(texts.begin(), texts.end(), "recompute_begin a");
  EXPECT_THAT(std::vector(begin, texts.end()),
              ElementsAre("recompute_begin a", "unpack a#in0 of pack 0", "unpack a#in1 of pack 1",
                          "op_begin aten::bmm", "alloc 200", "op_end aten::bmm",
                          "op_begin aten::add_", "op_end aten::add_", "pack a#0", "free 100",
                          "recompute_end a", "unpack a#0 of pack 3", "free 200", "step_end"));
  // 20 and 30, without what stands between them.
  EXPECT_EQ(step->trace().events.time.back(), trace.events.time.back() + 50);
  const SegmentRows& rows = step->segments().front();
  EXPECT_EQ(rows.ops.size(), 2U);
  EXPECT_EQ(rows.made_by, std::vector<OpId>{rows.ops.back()});
}

// A composed op and its own one, which writes: that is one write.
TEST(OpChains, WhatTheyAreGivenHasTheVersionThatItHadThere) {
  MicroTrace t;
  t.begin_op("aten::linear");
  const StorageId x = t.alloc(100);
  t.end_op();
  t.pack(x);
  t.begin_composite_op("aten::multiply_");
  t.write(x);
  t.begin_op("aten::mul_");
  t.write(x);
  t.end_op();
  t.end_op();
  t.run(10).begin_op("aten::exp");
  t.read(x);
  const StorageId y = t.alloc(200);
  t.run(10).end_op();
  t.free(x);
  const SavedId saved = t.pack(y);
  t.let_go(y);
  t.backward();
  t.drop(t.unpack(saved));
  t.free(y);
  const Trace trace = t.finish();
  const Result<Step> step = unroll(trace, by_ops({"step#1"}));
  ASSERT_TRUE(step.ok()) << step.error().text();
  const std::vector<SavedId>& inputs = step->segments().front().inputs;
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(step->trace().saved.version[inputs.front().index()], 1);
}

// Ends that stand ahead of their begins are no ends.
TEST(OpChains, OfARecordingThatIsNotInOrderAreRefused) {
  Trace trace = written_in_place("aten::add_");
  const auto at = [&](EventKind kind) {
    const auto found = std::find(trace.events.kind.begin(), trace.events.kind.end(), kind);
    return static_cast<std::size_t>(found - trace.events.kind.begin());
  };
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    EventKind& kind = trace.events.kind[e];
    if (kind == EventKind::op_begin) {
      kind = EventKind::op_end;
    } else if (kind == EventKind::op_end) {
      kind = EventKind::op_begin;
    }
  }
  ASSERT_LT(at(EventKind::op_end), at(EventKind::op_begin));
  const Result<Step> step = unroll(trace, by_ops({"a#0"}));
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.error().text(), HasSubstr("is not made in forward"));
}

TEST(OpChains, AnAllocationThatIsSaidToBeOfAnotherOpIsRefused) {
  TwoOps two;
  Trace trace = two.t.finish();
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.bytes[s] == 50) trace.storages.alloc_op[s] = OpId();  // inside of mul
  }
  const Result<Step> step = unroll(trace, by_ops({"a#0", "a#1"}));
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.error().text(), HasSubstr("their events are not in order"));
}

TEST(OpChains, WhatIsWrittenByOthersIsNotMadeAgain) {
  const auto why = [](const Trace& trace) {
    const Result<Step> step = unroll(trace, by_ops({"a#0"}));
    return step ? std::string("they can") : step.error().text();
  };
  EXPECT_THAT(why(written_in_place("aten::random_")), HasSubstr("aten::random_ writes into it"));
  EXPECT_THAT(why(written_in_place("aten::add_", false)),
              HasSubstr("aten::add__of_composed writes into it"));
  Trace older = written_in_place("aten::add_");
  older.ops.primitive.assign(older.ops.size(), 0);
  EXPECT_THAT(why(older), HasSubstr("does not say of which ops others are made"));
}

TEST(OpChains, SayWhyTheyCannot) {
  const auto why = [](const Trace& trace, std::vector<std::string> sites) {
    const Result<Step> step = unroll(trace, by_ops(std::move(sites)));
    return step ? std::string("they can") : step.error().text();
  };
  TwoOps plain(/*saves_x=*/true);
  const Trace trace = plain.t.finish();
  EXPECT_EQ(why(trace, {"a#1", "a#2"}), "they can");
  EXPECT_THAT(why(trace, {"a#9"}), HasSubstr("did you mean 'a#"));
  EXPECT_THAT(why(trace, {"a#0"}), HasSubstr("aten::linear made it, which does not run again"));
  TwoOps random(false, "aten::dropout");
  EXPECT_THAT(why(random.t.finish(), {"a#0"}), HasSubstr("aten::dropout made it"));
  TwoOps written(false, "aten::silu", /*writes_y=*/true);
  EXPECT_THAT(why(written.t.finish(), {"a#0"}), HasSubstr("aten::add_ writes into it"));
  TwoOps input(true, "aten::silu", false, /*writes_x=*/true);
  EXPECT_THAT(why(input.t.finish(), {"a#1"}), HasSubstr("aten::add_ writes what they read"));
}

TEST(OpChains, AThousandOpsAreTooMany) {
  const auto outcome = [](int ops) {
    MicroTrace t;
    t.begin_op("aten::linear");
    StorageId x = t.alloc(8);
    t.end_op();
    std::vector<std::pair<SavedId, StorageId>> saved;
    std::vector<std::string> sites;
    for (int i = 0; i < ops; ++i) {
      t.begin_op("aten::exp");
      t.read(x);
      const StorageId y = t.alloc(8);
      t.end_op();
      if (i == 0) {
        t.free(x);
      } else {
        t.let_go(x);
      }
      sites.push_back("step#" + std::to_string(i));
      saved.emplace_back(t.pack(y), y);
      x = y;
    }
    t.let_go(x);
    t.backward();
    for (; !saved.empty(); saved.pop_back()) {
      t.drop(t.unpack(saved.back().first));
      t.free(saved.back().second);
    }
    const Trace trace = t.finish();
    const Result<Step> step = unroll(trace, by_ops(sites));
    return step ? std::string("they can") : step.error().text();
  };
  EXPECT_EQ(outcome(900), "they can");
  EXPECT_THAT(outcome(1100), HasSubstr("a thousand of them"));
}

TEST(OpChains, AStorageOfTwoSitesIsGivenUpAtBoth) {
  MicroTrace t;
  t.begin_op("aten::silu");
  const StorageId x = t.alloc(100);
  t.end_op();
  const SavedId first = t.pack(x);
  const SavedId second = t.pack(x);
  t.let_go(x);
  t.backward();
  t.drop(t.unpack(second));
  t.drop(t.unpack(first));
  t.free(x);
  const Trace trace = t.finish();
  const Result<Step> one = unroll(trace, by_ops({"step#0"}));
  ASSERT_FALSE(one.ok());
  EXPECT_THAT(one.error().text(), HasSubstr("saved at step#1"));
  EXPECT_TRUE(unroll(trace, by_ops({"step#0", "step#1"})).ok());
}

TEST(OpChains, RulesGiveTheStructureBack) {
  TwoOps two;
  const Trace trace = two.t.finish();
  const std::vector<SavedRule> rules = op_rules(trace, by_ops({"a#0", "a#1"}));
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].decision, Decision::recompute);
  Plan plan;
  plan.saved = op_rules(trace, by_ops({"a#1"}));
  const Result<Structure> structure = structure_of(trace, plan);
  ASSERT_TRUE(structure.ok());
  EXPECT_EQ(structure->ops, std::vector<std::string>{"a#1"});
  const Result<Plan> again = plan_from_json(plan_to_json(plan), "p.json");
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(again->saved, plan.saved);
  // Elsewhere nothing is computed again.
  const Result<Lowering> lowered = lower(StepIndex(trace), plan);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().pointer, "/saved/0");
  plan.saved[0].site = "b*";
  const Result<Step> none = unroll(trace, plan);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().pointer, "/saved/0/site");
}

}  // namespace
}  // namespace stowage::simulator
