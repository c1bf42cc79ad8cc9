#include "simulator/step/plan_structure.h"
#include "simulator/step/segment_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "traces/trace_file.h"

namespace stowage::simulator {
namespace {

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
