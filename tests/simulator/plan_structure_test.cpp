#include "simulator/step/plan_structure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/step/segment_rules.h"
#include "simulator/step/unroll.h"
#include "tests/support/two_layers.h"
#include "traces/trace_file.h"

namespace stowage::simulator {
namespace {

using testing::TwoLayers;

TEST(PlanStructure, NamesTheOutermostCallsAndGroupsThem) {
  TwoLayers two;
  const Trace trace = two.finish();
  const auto names = [&](std::vector<RecomputeRule> rules) {
    Plan plan;
    plan.recompute = std::move(rules);
    const Result<Structure> structure = structure_of(trace, plan);
    return structure ? structure->recompute : std::vector<std::string>{structure.error().text()};
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({{"*"}}), (Names{"a", "b"}));
  EXPECT_EQ(names({{"*", 2}}), (Names{"a..b"}));
  EXPECT_EQ(names({{"*", RecomputeRule::kAll}}), (Names{"a..b"}));
  EXPECT_EQ(names({{"b"}, {"*"}}), (Names{"b", "a"}));
  EXPECT_NE(names({{"c"}}).front().find("names no layer call"), std::string::npos);
  // A row by its ends.
  EXPECT_EQ(names({{"a..b"}}), (Names{"a..b"}));
  EXPECT_NE(names({{"b..a"}}).front().find("is no row of layer calls"), std::string::npos);
  EXPECT_NE(names({{"a.."}}).front().find("is no row of layer calls"), std::string::npos);
  EXPECT_NE(names({{"b"}, {"a..b"}}).front().find("has 'b', which an earlier rule names"),
            std::string::npos);
  // Within others.
  RecomputeRule both{"*", RecomputeRule::kAll};
  both.within = {{"b"}};
  EXPECT_EQ(names({both}), (Names{"a..b", "b"}));
  both.within = {{"*"}};
  EXPECT_EQ(names({both}), (Names{"a..b", "a", "b"}));
  both.within = {{"c"}};
  EXPECT_NE(names({both}).front().find("/recompute/0/within/0/segment"), std::string::npos);
  Plan same;
  both.within = {{"a..b"}};
  same.recompute = {both};
  const Result<Step> refused = unroll(trace, same);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().pointer, "/recompute");
  EXPECT_NE(refused.error().message.find("they are the same calls"), std::string::npos);
  RecomputeRule alone{"a"};
  alone.within = {{"a"}};
  EXPECT_NE(names({alone}).front().find("names no layer call"), std::string::npos);
  const std::vector<RecomputeRule> rules = recompute_rules(trace, {{"a..b"}, {}, true, {}});
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].segment, "a..b");
  EXPECT_EQ(names(rules), (Names{"a..b"}));
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
    std::sort(back->begin(), back->end());
    std::sort(segments.begin(), segments.end());
    EXPECT_EQ(*back, segments);
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
