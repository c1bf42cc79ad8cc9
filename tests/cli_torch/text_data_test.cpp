// data=text: a step that learns, under a plan as without it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::expect_error;
using cli_tests::MainJob;
using cli_tests::Outcome;
using cli_tests::stowage;
using nlohmann::json;

constexpr const char* kReader = "gpt2:layers=2,width=128,seq=64,vocab=128,data=text";

// A model that knows nothing is near log 128 = 4.85 nats; one that knows how frequent each letter
// is, near 3.
TEST(TextData, IsLearntUnderAPlanAsWithoutIt) {
  MainJob job;
  job.profile(kReader, "8", "adamw");
  job.make_plan({"--budget", "70%"});
  const json plan = json::parse(std::ifstream(job.plan));
  EXPECT_NE(plan.at("for").at("model").get<std::string>().find("data=text"), std::string::npos);
  const Outcome executed = stowage({"execute", "--plan", job.plan, "--steps", "20", "--json"});
  ASSERT_EQ(executed.code, 0) << executed.err;
  const json losses = json::parse(executed.out).at("measured").at("losses");
  ASSERT_EQ(losses.size(), 20u);
  EXPECT_NEAR(losses.front().get<double>(), 4.85, 0.3);
  EXPECT_LT(losses.back().get<double>(), losses.front().get<double>() - 1) << losses;
  job.verify(/*moves=*/true);
}

TEST(TextData, OfDrawnTokensIsNothingLearnt) {
  MainJob job;
  job.profile("gpt2:layers=2,width=128,seq=64,vocab=128", "8", "adamw");
  job.make_plan({"--policy", "resident"});
  const Outcome executed = stowage({"execute", "--plan", job.plan, "--steps", "20", "--json"});
  ASSERT_EQ(executed.code, 0) << executed.err;
  const json losses = json::parse(executed.out).at("measured").at("losses");
  EXPECT_GT(losses.back().get<double>(), losses.front().get<double>() - 0.5) << losses;
}

TEST(TextData, IsRefusedWhereThereAreNoTargets) {
  MainJob job;
  const Outcome refused = stowage(
      {"profile", "llama3-8b:layers=1,width=64,data=text", "--device", "cpu", "-o", job.trace});
  expect_error(refused, 2, {"loss=ones, which has no targets to learn", "loss=cross-entropy"});
}

}  // namespace
}  // namespace stowage
