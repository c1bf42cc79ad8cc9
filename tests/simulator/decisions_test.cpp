// simulator/decisions: rules to decisions and back, on hand-made and random traces.
#include "simulator/plan/decisions.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "simulator/plan/plan_json.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// `layers` blocks with attn#0, attn#1 (400 bytes each), mlp#0 (4000 bytes) and a saved parameter.
Trace blocks(int layers) {
  MicroTrace m;
  for (int i = 0; i < layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    const StorageId weight = m.existing(64, StorageClass::parameter);
    m.begin_layer(name + ".attn");
    m.begin_op("aten::_softmax");
    m.run(10);
    m.pack(m.view(m.alloc(400)));
    m.pack(m.view(m.alloc(400)));
    m.end_op();
    m.end_layer(name + ".attn");
    m.begin_layer(name + ".mlp");
    m.begin_op("aten::gelu");
    m.run(10);
    m.pack(m.view(m.alloc(4000)));
    m.pack(m.view(weight));
    m.end_op();
    m.end_layer(name + ".mlp");
  }
  m.backward();
  return m.finish();
}

Result<Decisions> resolve_json(const Trace& trace, const std::string& rules) {
  const auto plan =
      plan_from_json(R"({"schema": "stowage-plan/1", "saved": [)" + rules + "]}", "p.json");
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  return resolve(trace, plan.value());
}

std::string leaving(const Trace& trace, const Decisions& decisions) {
  std::string out;
  for (std::size_t i = 0; i < decisions.saved.size(); ++i) {
    if (decisions.saved[i].decision == Decision::offload) {
      out += (out.empty() ? "" : " ") + trace.string(trace.saved.site[i]);
    }
  }
  return out;
}

TEST(Resolve, TheFirstRuleThatMatchesDecides) {
  const Trace trace = blocks(2);
  const auto chosen = [&](const std::string& rules) {
    const auto decisions = resolve_json(trace, rules);
    EXPECT_TRUE(decisions.ok()) << decisions.error().text();
    return decisions.ok() ? leaving(trace, decisions.value()) : std::string();
  };
  EXPECT_EQ(chosen(""), "");
  EXPECT_EQ(chosen(R"({"site": "*", "do": "offload"})"),
            "layers.0.attn#0 layers.0.attn#1 layers.0.mlp#0 "
            "layers.1.attn#0 layers.1.attn#1 layers.1.mlp#0");
  EXPECT_EQ(chosen(R"({"site": "*.attn#*", "do": "keep"}, {"site": "*", "do": "offload"})"),
            "layers.0.mlp#0 layers.1.mlp#0");
  EXPECT_EQ(chosen(R"({"op": "*softmax", "site": "layers.1.*", "do": "offload"})"),
            "layers.1.attn#0 layers.1.attn#1");
  EXPECT_EQ(chosen(R"({"min_bytes": 4000, "do": "offload"})"), "layers.0.mlp#0 layers.1.mlp#0");
  // A rule that earlier ones leave nothing to still matches: no error.
  EXPECT_EQ(chosen(R"({"site": "*", "do": "keep"}, {"site": "layers.0.mlp#0", "do": "offload"})"),
            "");
  // Parameters only by class.
  EXPECT_EQ(chosen(R"({"class": "param", "do": "offload"})"), "layers.0.mlp#1 layers.1.mlp#1");
  EXPECT_EQ(chosen(R"({"class": "param", "site": "layers.1*", "do": "offload"})"),
            "layers.1.mlp#1");
}

TEST(Resolve, FillsInPointsAndBudget) {
  const Trace trace = blocks(3);
  Plan plan;
  plan.budget.device = 5000;
  SavedRule rule;
  rule.site = "layers.*.mlp#0";
  rule.decision = Decision::offload;
  rule.release.kind = ReleasePoint::Kind::point;
  rule.release.point = {ProgramPoint::Phase::forward, "layers.", true, 1,
                        ProgramPoint::Where::end,     -1};
  rule.copy_out = CopyMode::compute;
  rule.share = false;
  plan.saved = {rule};
  // No layer has the path "layers.N": the micro trace names only what was begun.
  auto none = resolve(trace, plan);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().pointer, "/saved/0/release");
  plan.saved[0].release.point = {
      ProgramPoint::Phase::forward, "layers.2.mlp", false, 0, ProgramPoint::Where::end, -1};
  const auto decisions = resolve(trace, plan);
  ASSERT_TRUE(decisions.ok()) << decisions.error().text();
  EXPECT_EQ(decisions->budget, 5000);
  EXPECT_EQ(decisions->saved[2].rule, 0);
  EXPECT_EQ(decisions->saved[2].copy_out, CopyMode::compute);
  EXPECT_FALSE(decisions->saved[2].share);
  EXPECT_EQ(decisions->saved[2].release.point.layer, "layers.2.mlp");
  EXPECT_EQ(decisions->saved[0].rule, -1);
  plan.budget.automatic = 4000;
  EXPECT_EQ(resolve(trace, plan)->budget, 4000);
}

TEST(Resolve, ARuleThatMatchesNothingIsAnError) {
  const Trace trace = blocks(2);
  const auto error_of = [&](const std::string& rules) {
    const auto decisions = resolve_json(trace, rules);
    EXPECT_FALSE(decisions.ok()) << rules;
    return decisions.ok() ? Error{} : decisions.error();
  };
  Error error =
      error_of(R"({"site": "*", "do": "keep"}, {"site": "layers.0.atn#0", "do": "offload"})");
  EXPECT_EQ(error.code, ErrorCode::bad_input);
  EXPECT_EQ(error.pointer, "/saved/1/site");
  EXPECT_EQ(error.hint, "the nearest site is layers.0.attn#0");
  EXPECT_EQ(error_of(R"({"site": "layers.[5-9].mlp#0", "do": "offload"})").pointer,
            "/saved/0/site");
  EXPECT_NE(error_of(R"({"site": "zzz", "do": "offload"})").hint.find("layers."),
            std::string::npos);
  EXPECT_NE(error_of(R"({"site": "layers.0.mlp#1", "do": "offload"})").hint.find("class"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"site": "layers.0.mlp#0", "min_bytes": 9999, "do": "offload"})")
                .hint.find("the site exists"),
            std::string::npos);
  EXPECT_EQ(error_of(R"({"op": "aten::nothing", "do": "offload"})").pointer, "/saved/0");
  EXPECT_NE(
      error_of(R"({"do": "offload", "release": "fwd:layers.9:end"})").message.find("no layer"),
      std::string::npos);
}

// All packs of some layers, one pack of others, the parameters: few rules, the same decisions.
TEST(ToRules, ThirtyTwoLayersAreAFewLines) {
  const Trace trace = blocks(32);
  Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    const std::string& site = trace.string(trace.saved.site[i]);
    SavedDecision& d = decisions.saved[i];
    const int layer = std::stoi(site.substr(7));
    const bool parameter = site.find("mlp#1") != std::string::npos;
    if (!parameter && (layer < 20 || site.find("attn#1") != std::string::npos)) {
      d.decision = Decision::offload;
    }
  }
  const std::vector<SavedRule> rules = to_rules(trace, decisions);
  EXPECT_LE(rules.size(), 4U);
  EXPECT_EQ(rules.back().site, "*");
  EXPECT_EQ(rules.back().decision, Decision::keep);
  Plan plan;
  plan.saved = rules;
  EXPECT_EQ(leaving(trace, resolve(trace, plan).value()), leaving(trace, decisions));
}

TEST(ToRules, PointsBecomeRelative) {
  testing::MicroTrace m;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "layers." + std::to_string(i);
    m.begin_layer(name);
    m.pack(m.view(m.alloc(400)));
    m.end_layer(name);
  }
  m.backward();
  const Trace trace = m.finish();
  Decisions decisions;
  decisions.saved.resize(8);
  for (int i = 0; i < 8; ++i) {
    SavedDecision& d = decisions.saved[static_cast<std::size_t>(i)];
    d.decision = Decision::offload;
    d.release.kind = ReleasePoint::Kind::point;
    d.release.point.layer = "layers." + std::to_string(std::min(i + 2, 7));
    d.release.point.where = ProgramPoint::Where::end;
  }
  const std::vector<SavedRule> rules = to_rules(trace, decisions);
  EXPECT_LE(rules.size(), 4U);  // clamped at the end: two layers on their own
  EXPECT_TRUE(rules[0].release.point.relative);
}

// Any decisions, also such as no plan would have: the rules give them back.
TEST(ToRules, GiveTheDecisionsBack) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    testing::RandomTraceOptions options;
    options.ops = 4 + static_cast<int>(seed % 30);
    const Trace trace = testing::random_trace(seed, options);
    const Decisions decisions = testing::random_decisions(trace, seed);
    Plan plan;
    plan.saved = to_rules(trace, decisions);
    const auto text = plan_to_json(plan);
    const auto read = plan_from_json(text, "p.json");
    ASSERT_TRUE(read.ok()) << read.error().text();
    const auto back = resolve(trace, read.value());
    ASSERT_TRUE(back.ok()) << back.error().text();
    ASSERT_EQ(back->saved.size(), decisions.saved.size());
    for (std::size_t i = 0; i < decisions.saved.size(); ++i) {
      SavedDecision got = back->saved[i];
      SavedDecision want = decisions.saved[i];
      if (want.decision == Decision::keep) want = SavedDecision{};
      got.rule = want.rule = -1;
      ASSERT_EQ(got, want) << "seed " << seed << " " << trace.string(trace.saved.site[i]);
    }
  }
}

TEST(ToRules, SurviveStrangeNames) {
  testing::MicroTrace m;
  for (const char* name : {"a*b", "[x", "", "1.2.3", "007", "layers.99999999999999999999", "a#b"}) {
    m.begin_layer(name);
    m.pack(m.view(m.alloc(400)));
    m.end_layer(name);
  }
  m.backward();
  const Trace trace = m.finish();
  for (unsigned mask = 0; mask < 128; ++mask) {
    Decisions decisions;
    decisions.saved.resize(trace.saved.size());
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      if ((mask >> i & 1U) != 0) decisions.saved[i].decision = Decision::offload;
    }
    Plan plan;
    plan.saved = to_rules(trace, decisions);
    const auto back = resolve(trace, plan);
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(leaving(trace, back.value()), leaving(trace, decisions));
  }
}

}  // namespace
}  // namespace stowage::simulator
