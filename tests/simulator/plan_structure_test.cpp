#include "simulator/step/plan_structure.h"

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

}  // namespace
}  // namespace stowage::simulator
