// Two traces, plans or results: what changed.
#include "report/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "report/diff_input_json.h"
#include "simulator/plan/plan_json.h"
#include "tests/report/report_case.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"
#include "traces/trace_json.h"

namespace stowage::report_tests {
namespace {

using report::Change;
using report::Diff;
using report::Fact;
using report::FactUnit;
using ::testing::HasSubstr;

const Change* find(const Diff& diff, const std::string& name) {
  for (const Change& change : diff.changes) {
    if (change.name == name) return &change;
  }
  return nullptr;
}

std::vector<std::string> names_of(const Diff& diff) {
  std::vector<std::string> names;
  for (const Change& change : diff.changes) names.push_back(change.name);
  return names;
}

TEST(Diff, ComparesFactsByName) {
  const std::vector<Fact> before = {{"", "same", FactUnit::bytes, std::int64_t{5}},
                                    {"", "grown", FactUnit::bytes, std::int64_t{100}},
                                    {"", "zero", FactUnit::number, std::int64_t{0}},
                                    {"", "gone", FactUnit::text, std::string("x")},
                                    {"", "real", FactUnit::number, 2.0}};
  const std::vector<Fact> after = {{"", "new", FactUnit::number, std::int64_t{1}},
                                   {"", "real", FactUnit::number, std::int64_t{2}},
                                   {"", "zero", FactUnit::number, std::int64_t{3}},
                                   {"", "grown", FactUnit::bytes, std::int64_t{125}},
                                   {"", "same", FactUnit::bytes, std::int64_t{5}}};
  const Diff diff = report::compare(before, after);
  EXPECT_THAT(names_of(diff), ::testing::ElementsAre("grown", "zero", "gone", "new"));
  EXPECT_EQ(diff.unchanged, 2);  // `same`, and `real`, which is written otherwise
  EXPECT_EQ(diff.changes[0].difference(), 25);
  EXPECT_EQ(diff.changes[0].relative(), 0.25);
  EXPECT_EQ(diff.changes[1].difference(), 3);
  EXPECT_EQ(diff.changes[1].relative(), std::nullopt);
  EXPECT_EQ(diff.changes[2].after, std::nullopt);
  EXPECT_EQ(diff.changes[2].difference(), std::nullopt);
  EXPECT_EQ(diff.changes[3].before, std::nullopt);
}

TEST(Diff, ATraceIsEqualToItself) {
  const std::string text = trace_to_json(testing::small_trace(3));
  const auto diff = report::diff_texts(text, "a", text, "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  EXPECT_EQ(diff->kind, "trace");
  EXPECT_TRUE(diff->changes.empty());
  EXPECT_GT(diff->unchanged, 30);
}

// small_trace.h: one layer more is 400,000 B of parameter, a gradient as large, a 2 MB activation.
TEST(Diff, OfTracesNamesPeaksAndLayers) {
  const auto diff = report::diff_texts(trace_to_json(testing::small_trace(2)), "a",
                                       trace_to_json(testing::small_trace(3)), "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  const Change* peak = find(*diff, "peak_requested_bytes");
  ASSERT_NE(peak, nullptr);
  EXPECT_EQ(peak->difference(),
            static_cast<double>(testing::small_trace_peak(3) - testing::small_trace_peak(2)));
  const Change* layer = find(*diff, "layers:layers.2.saved_bytes");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->before, std::nullopt);
  EXPECT_EQ(std::get<std::int64_t>(*layer->after), 2'000'000);
  EXPECT_EQ(find(*diff, "layers:layers.0.saved_bytes"), nullptr);  // as before
}

// One layer more is one op more of each kind that a layer has; a GPU's times are the GPU's.
TEST(Diff, OfTracesNamesOps) {
  Trace before = testing::small_trace(2);
  Trace after = testing::small_trace(3);
  const auto op = [](const Trace& trace) { return trace.string(trace.ops.name.front()); };
  ASSERT_EQ(op(before), op(after));
  const std::string name = "ops:" + op(before);
  const auto on_cpu = report::compare(*report::facts_of(before), *report::facts_of(after));
  ASSERT_NE(find(on_cpu, name + ".calls"), nullptr);
  EXPECT_EQ(find(on_cpu, name + ".calls")->difference(), 1);
  EXPECT_EQ(find(on_cpu, name + ".duration_ns")->difference(), 1e6);
  EXPECT_GT(find(on_cpu, name + ".made_bytes")->difference(), 0);
  EXPECT_NE(find(on_cpu, "phases.forward.duration_ns"), nullptr);
}

// One kernel that takes longer, in linear of a layer in forward.
TEST(Diff, OfTracesOfAGpuHasTheGpusTimes) {
  const auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/mlp-l6-fp32-h200.trace.json.gz");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  const Trace& before = loaded->trace;
  Trace after = before;
  std::size_t kernel = 0;
  while (before.string(before.ops.name[before.gpu.op[kernel].index()]) != "aten::addmm") ++kernel;
  after.gpu.duration[kernel] += 20;
  const auto facts = report::facts_of(before);
  std::vector<std::string> names;
  for (const Fact& fact : *facts) names.push_back(fact.name);
  EXPECT_THAT(names, ::testing::Contains("phases.forward.launched_in_ns"));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("phases.forward.duration_ns")));
  const auto diff = report::compare(*facts, *report::facts_of(after));
  ASSERT_NE(find(diff, "ops:aten::linear.gpu_ns"), nullptr);
  EXPECT_EQ(find(diff, "ops:aten::linear.gpu_ns")->difference(), 20);
  EXPECT_EQ(find(diff, "phases.forward.gpu_ns")->difference(), 20);
  EXPECT_EQ(find(diff, "phases.forward.launched_in_ns"), nullptr);  // as before
}

TEST(Diff, OfPlansNamesRulesTheirOrderAndFigures) {
  simulator::Plan a;
  a.saved = {offload("x#*"), offload("y#*")};
  a.predicted = simulator::Predicted{.peak_requested = 100, .peak_active = 120, .step = 1000};
  simulator::Plan b = a;
  b.saved = {offload("y#*"), offload("x#*")};
  b.saved[1].reload.kind = simulator::ReloadPoint::Kind::unpack;
  b.predicted->peak_active = 90;
  const auto diff =
      report::diff_texts(simulator::plan_to_json(a), "a", simulator::plan_to_json(b), "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  EXPECT_EQ(diff->kind, "plan");
  EXPECT_THAT(names_of(*diff), ::testing::UnorderedElementsAre("predicted.peak_active_bytes",
                                                               "saved.x#*", "saved: order"));
  EXPECT_EQ(find(*diff, "predicted.peak_active_bytes")->relative(), -0.25);
  EXPECT_THAT(std::get<std::string>(*find(*diff, "saved.x#*")->after), HasSubstr("reload unpack"));
}

simulator::SavedRule by_ops(const std::string& site) {
  simulator::SavedRule rule;
  rule.site = site;
  rule.decision = simulator::Decision::recompute;
  return rule;
}

// Before: layers 0 and 1 run again, 2 to 3 leave, all else stays. After: layers 0 alone, what is
// saved at #1 of 1 and 2 is made again by ops, the rest of 2 and 3 leaves.
TEST(Diff, OfPlansSaysWhatBecomesOfEachLayerAndSite) {
  simulator::Plan a;
  a.recompute.resize(1);
  a.recompute[0].segment = "layers.[0-1]";
  a.saved = {offload("layers.[2-3]#*")};
  simulator::Plan b;
  b.recompute.resize(1);
  b.recompute[0].segment = "layers.0";
  b.saved = {by_ops("layers.[1-2]#1"), offload("layers.[2-3]#*"), offload("layers.0#in0")};
  const auto diff =
      report::diff_texts(simulator::plan_to_json(a), "a", simulator::plan_to_json(b), "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  const auto change = [&](const std::string& name) -> std::string {
    const Change* found = find(*diff, "decisions." + name);
    if (found == nullptr) return "the same";
    return std::get<std::string>(*found->before) + " -> " + std::get<std::string>(*found->after);
  };
  EXPECT_EQ(change("layers.0"), "the same");
  EXPECT_EQ(change("layers.1"), "recompute as a layer -> recompute by ops");
  EXPECT_EQ(change("layers.1#1"), "recompute with layers.1 -> recompute by ops");
  EXPECT_EQ(change("layers.2#1"), "offload -> recompute by ops");
  EXPECT_EQ(change("layers.2#*"), "the same");
  EXPECT_EQ(change("layers.0#in0"), "keep -> offload");  // what it is given is not its own
  EXPECT_EQ(change("layers.3#*"), "the same");
  // Unless a rule names it, what it is given is where its segment's rule says.
  b.recompute[0].boundary = simulator::Decision::offload;
  b.saved.back() = offload("layers.0#*");
  a.saved.push_back(offload("layers.0#in0"));
  const auto bounded =
      report::diff_texts(simulator::plan_to_json(a), "a", simulator::plan_to_json(b), "b");
  ASSERT_TRUE(bounded.ok()) << bounded.error().text();
  EXPECT_EQ(find(*bounded, "decisions.layers.0#in0"), nullptr);
  b.recompute[0].boundary = simulator::Decision::keep;
  const auto kept =
      report::diff_texts(simulator::plan_to_json(a), "a", simulator::plan_to_json(b), "b");
  ASSERT_TRUE(kept.ok()) << kept.error().text();
  ASSERT_NE(find(*kept, "decisions.layers.0#in0"), nullptr);
  EXPECT_EQ(std::get<std::string>(*find(*kept, "decisions.layers.0#in0")->after), "keep");
  // The rules themselves.
  EXPECT_NE(find(*diff, "recompute.layers.[0-1]"), nullptr);
  EXPECT_NE(find(*diff, "saved.layers.[1-2]#1"), nullptr);
}

TEST(Diff, OfPlansKnowsRowsAndSegmentsWithinOthers) {
  simulator::Plan a;
  simulator::Plan b;
  b.recompute = {{"layers.1..layers.3"},
                 {"embed..norm"},
                 {"layers.[4-5]", 2, simulator::Decision::offload, {{"layers.4", 1}}}};
  b.recompute[2].within[0].within = {{"layers.4.mlp"}};
  const auto diff =
      report::diff_texts(simulator::plan_to_json(a), "a", simulator::plan_to_json(b), "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  const auto after = [&](const std::string& fact) -> std::string {
    const Change* found = find(*diff, fact);
    return found == nullptr ? "the same" : std::get<std::string>(*found->after);
  };
  EXPECT_EQ(after("decisions.layers.2"), "recompute, as layers.1..layers.3");
  EXPECT_EQ(after("decisions.embed"), "recompute, as embed..norm");
  EXPECT_EQ(after("decisions.norm"), "recompute, as embed..norm");
  EXPECT_EQ(after("decisions.layers.1..layers.3"), "the same");
  EXPECT_EQ(after("decisions.layers.5"), "recompute, 2 in a row, given offload");
  EXPECT_EQ(after("decisions.layers.4"),
            "recompute, 2 in a row, given offload; within that recompute as a layer");
  EXPECT_EQ(after("decisions.layers.4.mlp"),
            "recompute with layers.4; within that recompute with layers.4; within that recompute "
            "as a layer");
  EXPECT_EQ(after("recompute.layers.1..layers.3"), "the row as one");
  EXPECT_EQ(after("recompute.layers.[4-5] > layers.4 > layers.4.mlp"), "each layer");
}

TEST(Diff, OfPlansKnowsSegmentsConditionsAndNumbersThatAreTooMany) {
  simulator::Plan a;
  simulator::Plan b;
  b.recompute.resize(2);
  b.recompute[0] = {"a.[0-1]", simulator::RecomputeRule::kAll, simulator::Decision::offload};
  b.recompute[1] = {"b.[0-999999999]", 2};
  b.saved = {offload("c[*]#[0,2]")};
  b.saved[0].min_bytes = 100;
  const auto diff =
      report::diff_texts(simulator::plan_to_json(a), "a", simulator::plan_to_json(b), "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  const auto after = [&](const std::string& name) -> std::string {
    const Change* found = find(*diff, "decisions." + name);
    if (found == nullptr) return "the same";
    EXPECT_EQ(std::get<std::string>(*found->before), "keep");
    return std::get<std::string>(*found->after);
  };
  EXPECT_EQ(after("a.1"), "recompute, all in a row, given offload");
  EXPECT_EQ(after("c*#2"), "offload in part, keep");
  // Its rule alone says it.
  EXPECT_EQ(after("b.[0-999999999]"), "the same");
  EXPECT_EQ(std::get<std::string>(*find(*diff, "recompute.b.[0-999999999]")->after),
            "2 layers as one");
}

// Another number of passes, and of layers that run again.
TEST(Diff, OfResultsWithOtherPassesAndLayers) {
  const std::string a = R"({"schema": "stowage-simulate/1",
    "passes": {"clean": {"step_ns": 5}},
    "recomputed": [{"segment": "layers.0", "time_ns": 4}],
    "recomputed_layers": [{"layer": "layers.0", "by": "layers", "freed_bytes": 8, "time_ns": 4}]})";
  const std::string b = R"({"schema": "stowage-simulate/1",
    "passes": {"clean": {"step_ns": 5}, "timing": {"step_ns": 6}},
    "recomputed": [{"segment": "layers.0", "time_ns": 4}, {"segment": "layers.1", "time_ns": 3}],
    "recomputed_layers": [{"layer": "layers.0", "by": "layers", "freed_bytes": 8, "time_ns": 5},
                          {"layer": "layers.1", "by": "ops", "freed_bytes": 2, "time_ns": 3}]})";
  const auto diff = report::diff_texts(a, "a", b, "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  EXPECT_THAT(names_of(*diff),
              ::testing::UnorderedElementsAre("passes.timing.step_ns", "recomputed.length",
                                              "recomputed_layers.length",
                                              "recomputed_layers.layers.0 by layers.time_ns",
                                              "recomputed_layers.layers.1 by ops.freed_bytes",
                                              "recomputed_layers.layers.1 by ops.time_ns"));
  const Change* time = find(*diff, "recomputed_layers.layers.0 by layers.time_ns");
  EXPECT_EQ(time->unit, FactUnit::nanoseconds);
  EXPECT_EQ(time->difference(), 1);
}

TEST(Diff, OfResultsIsByKeysWithUnits) {
  const std::string a = R"({"schema": "stowage-verify/1", "bitwise": true,
    "measured": {"peak_active_bytes": 100, "step_ns": 5000}, "max_abs_diff": 0.0,
    "transfer_bytes": {"d2h": 7}, "stalls": [1, 2, 3], "policy": null})";
  const std::string b = R"({"schema": "stowage-verify/1", "bitwise": false,
    "measured": {"peak_active_bytes": 110, "step_ns": 5000}, "max_abs_diff": 0.5,
    "transfer_bytes": {"d2h": 9}, "stalls": [1], "policy": null})";
  const auto diff = report::diff_texts(a, "a", b, "b");
  ASSERT_TRUE(diff.ok()) << diff.error().text();
  EXPECT_EQ(diff->kind, "verify");
  EXPECT_THAT(names_of(*diff),
              ::testing::ElementsAre("bitwise", "measured.peak_active_bytes", "max_abs_diff",
                                     "transfer_bytes.d2h", "stalls.length"));
  EXPECT_EQ(find(*diff, "measured.peak_active_bytes")->unit, FactUnit::bytes);
  EXPECT_EQ(find(*diff, "transfer_bytes.d2h")->unit, FactUnit::bytes);
  EXPECT_EQ(find(*diff, "stalls.length")->difference(), -2);
  EXPECT_EQ(find(*diff, "max_abs_diff")->difference(), 0.5);
  EXPECT_EQ(diff->unchanged, 1);
}

TEST(Diff, MixedKindsAreAUsageErrorInWords) {
  const std::string trace = trace_to_json(testing::small_trace(1));
  const std::string plan = simulator::plan_to_json({});
  const std::string verify = R"({"schema": "stowage-verify/1"})";
  const std::string execute = R"({"schema": "stowage-execute/1"})";
  const auto mixed = report::diff_texts(trace, "t.json", plan, "p.json");
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.error().code, ErrorCode::usage);
  EXPECT_EQ(mixed.error().message, "t.json is a trace, p.json is a plan");
  const auto verbs = report::diff_texts(verify, "v.json", execute, "e.json");
  ASSERT_FALSE(verbs.ok());
  EXPECT_EQ(verbs.error().message, "v.json is an answer of verify, e.json is an answer of execute");
}

TEST(Diff, WhatIsNoInputIsSaid) {
  const std::string plan = simulator::plan_to_json({});
  for (const char* text :
       {"", "[1, 2]", "7", "{", "{}", R"({"schema": "other/1"})",
        R"({"schema": {"name": "chrome"}})", R"({"a": {"schema": "stowage-plan/1"}})",
        R"({"schema": "stowage-/1"})"}) {
    const auto diff = report::diff_texts(text, "x.json", plan, "p.json");
    ASSERT_FALSE(diff.ok()) << text;
    EXPECT_EQ(diff.error().code, ErrorCode::bad_input) << text;
    EXPECT_EQ(diff.error().file, "x.json") << text;
  }
  std::string deep = R"({"schema": "stowage-verify/1", "a": )";
  deep += std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const auto diff = report::diff_texts(deep, "deep.json", deep, "deep.json");
  ASSERT_FALSE(diff.ok());
  EXPECT_THAT(diff.error().message, HasSubstr("nested more than 32 levels deep"));
}

// Cut off and overwritten inputs: a diff or one clear error, never anything else.
TEST(Diff, DamagedInputsAreErrorsOrDiffs) {
  std::mt19937_64 dice(11);
  const std::string good[] = {
      trace_to_json(testing::small_trace(1)), simulator::plan_to_json({}),
      R"({"schema": "stowage-verify/1", "measured": {"step_ns": 5, "x": [1]}, "t": "x\u00e9"})"};
  int errors = 0;
  for (const std::string& text : good) {
    for (int i = 0; i < 300; ++i) {
      std::string bad = text;
      if (i % 2 == 0) {
        bad.resize(dice() % bad.size());
      } else {
        for (int k = 0; k < 4; ++k) bad[dice() % bad.size()] = static_cast<char>(dice());
      }
      const auto diff = report::diff_texts(text, "good.json", bad, "bad.json");
      if (diff.ok()) continue;
      ++errors;
      const bool known = diff.error().code == ErrorCode::bad_input
                             ? diff.error().file == "bad.json"
                             : diff.error().code == ErrorCode::usage;
      EXPECT_TRUE(known) << diff.error().text();
      EXPECT_FALSE(diff.error().message.empty());
      EXPECT_EQ(diff.error().text().find('\n'), std::string::npos) << diff.error().text();
    }
  }
  EXPECT_GT(errors, 500);
}

}  // namespace
}  // namespace stowage::report_tests
