// The command on plans that let layers run again, on a recorded step of a GPT-2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "tests/cli/process.h"

namespace stowage::cli_tests {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class PlanRecompute : public ::testing::Test {
 protected:
  Outcome run(cli::Args args) {
    args.insert(args.begin() + 1, trace_);
    std::ostringstream out;
    std::ostringstream err;
    const int code = cli::run_stowage(args, out, err);
    return {code, out.str(), err.str()};
  }
  Json answer(cli::Args args) {
    args.emplace_back("--json");
    const Outcome outcome = run(std::move(args));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  static std::int64_t of(const Json& figures, const char* key) {
    return figures.at(key).get<std::int64_t>();
  }

  std::string trace_ = STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz";
  TemporaryFolder folder_;
};

TEST_F(PlanRecompute, IsPlannedSaidAndReplayedTheSame) {
  const std::string file = folder_.file("p.json");
  const Json plan = answer({"plan", "--budget", "50%", "-o", file});
  const Json& saved = plan.at("plan").at("saved");
  const bool by_ops = std::any_of(saved.begin(), saved.end(),
                                  [](const Json& rule) { return rule.at("do") == "recompute"; });
  ASSERT_TRUE(by_ops || plan.at("plan").contains("recompute"));
  ASSERT_FALSE(plan.at("recomputed").empty());
  EXPECT_GT(of(plan.at("search"), "structures"), 0);
  std::int64_t freed = 0;
  for (const Json& segment : plan.at("recomputed")) {
    EXPECT_GT(of(segment, "time_ns"), 0) << segment;
    freed += of(segment, "freed_bytes");
  }
  // What is away by recompute and by copies together is at least what the peak is lower.
  EXPECT_GE(freed + of(plan.at("predicted"), "host_bytes"),
            of(plan.at("resident"), "peak_requested_bytes") -
                of(plan.at("predicted"), "peak_requested_bytes"));
  const Json replayed = answer({"simulate", "--plan", file});
  for (const char* key : {"step_ns", "peak_requested_bytes", "peak_active_bytes", "host_bytes"}) {
    EXPECT_EQ(of(replayed, key), of(plan.at("predicted"), key)) << key;
  }
  const Outcome text = run({"plan", "--budget", "75%", "--allow", "recompute", "-o", file});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("runs again"));
  EXPECT_THAT(text.out, HasSubstr("together"));
}

TEST_F(PlanRecompute, ExplainSaysWhatEachLayerBuys) {
  const Json layers = answer({"simulate", "--policy", "checkpoint:every=6"});
  ASSERT_EQ(layers.at("recomputed_layers").size(), 2U);
  std::int64_t freed = 0;
  for (const Json& layer : layers.at("recomputed_layers")) {
    EXPECT_EQ(layer.at("by"), "layers");
    EXPECT_GT(of(layer, "time_ns"), 0);
    EXPECT_LE(of(layer, "freed_at_peak_bytes"), of(layer, "freed_bytes"));
    freed += of(layer, "freed_at_peak_bytes");
  }
  // What is gone at the peak is what the peak is lower.
  EXPECT_EQ(freed,
            of(layers.at("resident"), "peak_requested_bytes") - of(layers, "peak_requested_bytes"));
  const Json ops = answer({"plan", "--policy", "selective"});
  const Json& by_ops = ops.at("recomputed_layers");
  EXPECT_TRUE(std::any_of(by_ops.begin(), by_ops.end(), [](const Json& layer) {
    return layer.at("layer") == "layers.0.attn" && layer.at("by") == "ops";
  })) << by_ops;

  const Outcome text = run({"simulate", "--policy", "checkpoint:every=6", "--explain"});
  EXPECT_THAT(text.out, HasSubstr("What recompute buys"));
  EXPECT_THAT(text.out, HasSubstr("layers.6  layers"));
  const Outcome plain = run({"simulate", "--policy", "checkpoint:every=6"});
  EXPECT_THAT(plain.out, ::testing::Not(HasSubstr("What recompute buys")));
  const Outcome plan = run({"plan", "--policy", "selective", "--explain", "-o", folder_.file("p")});
  EXPECT_THAT(plan.out, ::testing::ContainsRegex("layers.0.attn +ops"));
  // Each rule that recomputes says how much it decides about.
  EXPECT_THAT(plan.out, ::testing::Not(::testing::ContainsRegex("recompute +0 +0 B")));
}

TEST_F(PlanRecompute, DiffNamesLayersThatChanged) {
  const std::string all = folder_.file("all.json");
  const std::string some = folder_.file("some.json");
  ASSERT_EQ(run({"plan", "--policy", "checkpoint", "-o", all}).code, 0);
  ASSERT_EQ(run({"plan", "--policy", "checkpoint:every=2", "-o", some}).code, 0);
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::run_stowage({"diff", all, some, "--json"}, out, err), 0) << err.str();
  const Json json = Json::parse(out.str(), nullptr, false);
  std::vector<std::string> layers;
  for (const Json& change : json.at("changes")) {
    if (change.at("section") != "decisions") continue;
    layers.push_back(change.at("name").get<std::string>());
    EXPECT_EQ(change.at("before"), "recompute as a layer");
    EXPECT_EQ(change.at("after"), "keep");
  }
  EXPECT_THAT(layers, ::testing::ElementsAre("decisions.layers.1", "decisions.layers.3",
                                             "decisions.layers.5", "decisions.layers.7",
                                             "decisions.layers.9", "decisions.layers.11"));
}

TEST_F(PlanRecompute, DenyLeavesItOut) {
  const Json moved = answer({"plan", "--budget", "75%", "--deny", "recompute,params"});
  EXPECT_TRUE(moved.at("recomputed").empty());
  EXPECT_FALSE(moved.at("plan").contains("recompute"));
  EXPECT_FALSE(moved.at("plan").contains("parameters"));
  EXPECT_EQ(of(moved.at("search"), "structures"), 0);
}

TEST_F(PlanRecompute, APolicyIsReplayedAsItIsPlanned) {
  const Json planned = answer({"plan", "--policy", "checkpoint"});
  const Json replayed = answer({"simulate", "--policy", "checkpoint"});
  EXPECT_EQ(of(replayed, "step_ns"), of(planned.at("predicted"), "step_ns"));
  EXPECT_EQ(of(replayed, "peak_active_bytes"), of(planned.at("predicted"), "peak_active_bytes"));
  EXPECT_LT(of(replayed, "peak_active_bytes"), of(planned.at("resident"), "peak_active_bytes") / 2);
}

TEST_F(PlanRecompute, BadListsAreRefused) {
  const auto error_of = [&](cli::Args args) {
    const Outcome outcome = run(std::move(args));
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_THAT(error_of({"plan", "--budget", "75%", "--deny", "recompote"}),
              HasSubstr("--deny: 'recompote' is nothing that auto decides"));
  EXPECT_THAT(error_of({"plan", "--budget", "75%", "--allow", "offload,"}),
              HasSubstr("--allow: ''"));
  EXPECT_THAT(error_of({"plan", "--budget", "75%", "--allow", "offload", "--deny", "params"}),
              HasSubstr("give one of them"));
  EXPECT_THAT(error_of({"plan", "--policy", "thunder", "--deny", "params"}),
              HasSubstr("without --policy"));
}

}  // namespace
}  // namespace stowage::cli_tests
