#include "simulator/step/plan_structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "simulator/step/op_chains.h"
#include "simulator/step/segment_rule_writer.h"
#include "simulator/step/segment_rules.h"
#include "simulator/step/segments.h"
#include "simulator/step/unroll.h"
#include "tests/support/micro_trace.h"
#include "tests/support/two_layers.h"
#include "traces/trace_file.h"

namespace stowage::simulator {
namespace {

using stowage::testing::MicroTrace;
using stowage::testing::TwoLayers;
using ::testing::HasSubstr;
using ::testing::Not;

using Names = std::vector<std::string>;

// What rules name in a step of the layers "a" and "b", or the error alone.
Names names(std::vector<RecomputeRule> rules) {
  TwoLayers two;
  const Trace trace = two.finish();
  Plan plan;
  plan.recompute = std::move(rules);
  const Result<Structure> structure = structure_of(trace, plan);
  return structure ? structure->recompute : Names{structure.error().text()};
}

std::string refused(std::vector<RecomputeRule> rules) {
  const Names all = names(std::move(rules));
  return all.size() == 1 ? all.front() : "they are not refused";
}

RecomputeRule run_of_all(std::vector<RecomputeRule> within) {
  return {"*", RecomputeRule::kAll, Decision::keep, std::move(within)};
}

TEST(PlanStructure, NamesTheOutermostCallsAndGroupsThem) {
  EXPECT_EQ(names({{"*"}}), (Names{"a", "b"}));
  EXPECT_EQ(names({{"*", 2}}), (Names{"a..b"}));
  EXPECT_EQ(names({{"*", RecomputeRule::kAll}}), (Names{"a..b"}));
  EXPECT_EQ(names({{"b"}, {"*"}}), (Names{"b", "a"}));
  EXPECT_EQ(names({{"a..b"}}), (Names{"a..b"}));
  EXPECT_EQ(names({run_of_all({{"b"}})}), (Names{"a..b", "b"}));
  EXPECT_EQ(names({run_of_all({{"*"}})}), (Names{"a..b", "a", "b"}));
  TwoLayers two;
  const std::vector<RecomputeRule> rules = recompute_rules(two.finish(), {{"a..b"}, {}, true, {}});
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].segment, "a..b");
  EXPECT_EQ(names(rules), (Names{"a..b"}));
}

TEST(PlanStructure, SaysWhyARuleNamesNothing) {
  EXPECT_THAT(refused({{"c"}}), HasSubstr("/recompute/0/segment: \"c\" names no layer call"));
  EXPECT_THAT(refused({{"step"}}), HasSubstr("stands for what lies in no layer"));
  EXPECT_THAT(refused({{"b"}, {"b"}}),
              HasSubstr("/recompute/1/segment: earlier rules have every layer call"));
  EXPECT_THAT(refused({{"*"}, {"a"}}), HasSubstr("earlier rules have every layer call"));
  EXPECT_THAT(refused({{"*", 100}}),
              HasSubstr("/recompute/0/each: \"each\" is 100, and \"*\" names 2 layer calls"));
  EXPECT_THAT(refused({run_of_all({{"a", 2}})}),
              HasSubstr("/recompute/0/within/0/each: \"each\" is 2, and \"a\" names 1 layer call"));
  EXPECT_THAT(refused({{"a", 1, Decision::keep, {{"b"}}}}), HasSubstr("no layer call lies there"));
  EXPECT_THAT(refused({run_of_all({{"c"}})}), HasSubstr("/recompute/0/within/0/segment"));
  EXPECT_THAT(refused({{std::string(5000, 'x')}}), Not(HasSubstr(std::string(100, 'x'))));
}

TEST(PlanStructure, SaysWhyARowIsNone) {
  EXPECT_THAT(refused({{"a.."}}), HasSubstr("the names of two"));
  EXPECT_THAT(refused({{"..b"}}), HasSubstr("the names of two"));
  EXPECT_THAT(refused({{"a..b..c"}}), HasSubstr("the names of two"));
  EXPECT_THAT(refused({{"a..?"}}), HasSubstr("no patterns"));
  EXPECT_THAT(refused({{"a..a"}}), HasSubstr("the row has one layer"));
  EXPECT_THAT(refused({{"a..bb"}}),
              HasSubstr("\"bb\" names no layer call (the nearest layer is b)"));
  EXPECT_THAT(refused({{"b..a"}}), HasSubstr("'a' runs ahead of 'b' (\"a..b\")"));
  EXPECT_THAT(refused({{"b"}, {"a..b"}}), HasSubstr("has 'b', which an earlier rule names"));
}

// "layers.3" has "layers.3.mlp" in it.
TEST(PlanStructure, SaysWhyARuleDoesNotFitToAnotherOfALayerWithin) {
  const auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const auto why = [&](std::vector<RecomputeRule> rules) {
    const auto named = segments_named(loaded->trace, rules);
    return named ? "they are not refused" : named.error().text();
  };
  EXPECT_THAT(why({{"layers.3.mlp"}, {"layers.[0-9]"}}),
              HasSubstr("/recompute/1/segment: 'layers.3' has 'layers.3.mlp' in it"));
  EXPECT_THAT(why({{"layers.3.mlp"}, {"layers.2..layers.4"}}),
              HasSubstr("'layers.3' has 'layers.3.mlp' in it"));
  EXPECT_EQ(why({{"layers.3"}, {"layers.[0-9]*"}}), "they are not refused");
  EXPECT_THAT(why({{"layers.3.mlp..layers.4.mlp"}}), HasSubstr("'layers.4.mlp' lies within"));
  EXPECT_THAT(why({{"layers.3..layers.3.mlp"}}), HasSubstr("lies within 'layers.3'"));
  EXPECT_THAT(why({{"layers.3", 1, Decision::keep, {{"layers.4"}}}}),
              HasSubstr("only calls within the segments of the rule around it"));
  EXPECT_THAT(why({{"layers.3", 1, Decision::keep, {{"layers.2.mlp..layers.3.mlp"}}}}),
              HasSubstr("\"layers.2.mlp\" names no layer call there"));
  EXPECT_THAT(why({{"layers.[0-3]", 2, Decision::keep, {{"layers.*", 4}}}}),
              HasSubstr("/recompute/0/within/0/segment: the rule names all of "
                        "'layers.0..layers.1', the segment that it is within"));
}

// Groups of two layers: a row of one in each is none, whichever comes first.
TEST(PlanStructure, SaysThatARowWithinCrossesTwoSegments) {
  const auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  for (const char* row : {"layers.1..layers.2", "layers.2..layers.1"}) {
    const auto named = segments_named(loaded->trace, {{"layers.[0-3]", 2, std::nullopt, {{row}}}});
    ASSERT_FALSE(named) << row;
    EXPECT_THAT(named.error().text(), HasSubstr("/recompute/0/within/0/segment: 'layers."));
    EXPECT_THAT(named.error().text(), HasSubstr("lie in two segments of the rule around it"));
    EXPECT_THAT(named.error().text(), Not(HasSubstr("lies within")));
  }
}

TEST(PlanStructure, SaysHowOftenALayerIsCalled) {
  const auto once = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(once) << once.error().text();
  const auto named = segments_named(once->trace, {{"layers.0@0"}});
  ASSERT_FALSE(named);
  EXPECT_THAT(named.error().text(),
              HasSubstr("the step calls 'layers.0' once (name it 'layers.0')"));
  MicroTrace twice;
  for (int call = 0; call < 2; ++call) {
    twice.begin_layer("a");
    twice.end_layer("a");
  }
  const auto third = segments_named(twice.finish(), {{"a@2"}});
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().text(),
              HasSubstr("the step calls 'a' 2 times (its calls are 'a@0' to 'a@1')"));
}

// Each refusal says what to do.
TEST(PlanStructure, WhatCannotRunAgainSaysWhatToDo) {
  const auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const SegmentFinder finder(loaded->trace);
  int refused = 0;
  for (const SegmentFinder::Named& from : finder.calls()) {
    for (const SegmentFinder::Named& to : finder.calls()) {
      const auto found = finder.find(from.name + kRunOfLayers + to.name);
      if (found) continue;
      ++refused;
      EXPECT_FALSE(found.error().hint.empty()) << found.error().text();
    }
  }
  EXPECT_GT(refused, 100);
  const ChainFinder chains(loaded->trace);
  refused = 0;
  for (const StringId site : loaded->trace.saved.site) {
    const auto found = chains.find({loaded->trace.string(site)});
    if (found) continue;
    ++refused;
    EXPECT_FALSE(found.error().hint.empty()) << found.error().text();
  }
  EXPECT_GT(refused, 10);
}

TEST(PlanStructure, WhatCannotRunAgainIsSaidAtItsRule) {
  const auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  Plan plan;
  plan.recompute = {{"layers.0"}, {"layers.1", 1, Decision::keep, {{"layers.1.*"}}}, {"head"}};
  const auto pointer = [&] {
    const Result<Step> step = unroll(loaded->trace, plan);
    return step ? "it can" : step.error().pointer;
  };
  EXPECT_EQ(pointer(), "it can");
  SavedRule by_ops;
  by_ops.decision = Decision::recompute;
  by_ops.site = "layers.2.mlp*";
  plan.saved = {SavedRule{}, by_ops};
  plan.saved[0].site = "layers.2.attn*";
  EXPECT_EQ(pointer(), "/saved/1") << "not all of it can be made again by ops";
  plan.saved.clear();
  // Two of them in a row: the model does something in between.
  plan.recompute[1].within = {{"layers.1.*", 2}};
  EXPECT_EQ(pointer(), "/recompute/1/within/0");
}

TEST(PlanStructure, RulesOfSegmentsGiveTheSameSegments) {
  const auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  // One of two layers in a row, two of one layer each, and one whose name has no number.
  Structure structure;
  structure.recompute = {"layers.1..layers.2", "layers.4", "layers.6", "head"};
  const std::vector<RecomputeRule> rules = recompute_rules(loaded->trace, structure);
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].segment, "layers.[1-2]");
  EXPECT_EQ(rules[0].each, RecomputeRule::kAll);
  Plan plan;
  plan.recompute = rules;
  auto back = structure_of(loaded->trace, plan);
  ASSERT_TRUE(back) << back.error().text();
  std::sort(back->recompute.begin(), back->recompute.end());
  std::sort(structure.recompute.begin(), structure.recompute.end());
  EXPECT_EQ(back->recompute, structure.recompute);
}

// Groups of layers, layers in each of them, and a part of one of those.
TEST(PlanStructure, RulesOfNestedSegmentsGiveTheSameSegments) {
  const auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const auto expect_back = [&](std::vector<std::string> segments, std::size_t rules_at_most) {
    Structure structure;
    structure.recompute = segments;
    const std::vector<RecomputeRule> rules = recompute_rules(loaded->trace, structure);
    EXPECT_LE(rules.size(), rules_at_most);
    auto back = segments_named(loaded->trace, rules);
    ASSERT_TRUE(back) << back.error().text();
    std::vector<std::string> named;
    for (const NamedSegment& each : *back) named.push_back(each.name);
    std::sort(named.begin(), named.end());
    std::sort(segments.begin(), segments.end());
    EXPECT_EQ(named, segments);
    Plan plan;
    plan.recompute = rules;
    EXPECT_TRUE(unroll(loaded->trace, plan).ok());
  };
  expect_back({"layers.0..layers.3", "layers.0", "layers.1", "layers.2", "layers.3",
               "layers.4..layers.7", "layers.5", "layers.5.mlp"},
              2);
  expect_back({"layers.1", "layers.1.mlp", "layers.2", "layers.2.mlp"}, 1);
  // Not all of them have one: rules of their own.
  expect_back({"layers.1", "layers.1.mlp", "layers.2", "layers.2.attn", "layers.3"}, 3);
}

}  // namespace
}  // namespace stowage::simulator
