// Micro-batches of a step's tail as a user has them: recorded in a sweep, planned, verified.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::expect_error;
using cli_tests::MainJob;
using cli_tests::Outcome;
using cli_tests::stowage;
using nlohmann::json;

// The loss over its vocabulary makes the peak.
constexpr const char* kHeadHeavy = "gpt2:layers=2,width=32,seq=64,vocab=2000,dropout=0.1";

TEST(MicroBatches, OfAHeadArePlannedAndVerified) {
  MainJob job;
  const json recorded = job.profile(kHeadHeavy, "3", "adamw", {"--micro-batches", "head=2,7"});
  const json& divided = recorded.at("divided");
  ASSERT_EQ(divided.size(), 2u);
  EXPECT_EQ(divided[1].at("micro_batches"), json::parse(R"([{"segment": "head", "count": 7}])"));
  EXPECT_LT(divided[1].at("peak_requested_bytes"), divided[0].at("peak_requested_bytes"));
  // No plan of the step at once.
  const Outcome at_once =
      stowage({"plan", job.trace, "--budget", "60%", "--deny", "micro-batch", "--json"});
  ASSERT_EQ(at_once.code, 1) << at_once.out;
  EXPECT_NE(at_once.err.find("infeasible: the floor of what is allowed"), std::string::npos)
      << at_once.err;

  job.make_plan({"--budget", "60%"});
  const json plan = json::parse(std::ifstream(job.plan));
  ASSERT_EQ(plan.at("micro_batches").size(), 1u);
  EXPECT_EQ(plan.at("micro_batches")[0].at("segment"), "head");
  // Whether the fastest plan moves anything as well depends on the recorded times.
  const Outcome simulated = stowage({"simulate", job.trace, "--plan", job.plan, "--json"});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  job.verify(json::parse(simulated.out).at("host_bytes").get<long>() > 0);
  const Outcome verified = stowage({"verify", "--plan", job.plan, "--json"});
  ASSERT_EQ(verified.code, 0) << verified.err;
  const json result = json::parse(verified.out);
  EXPECT_NE(result.at("micro_batches").get<std::string>().find("head in "), std::string::npos);
  // Sums in another order: apart, and by little.
  EXPECT_GT(result.at("plain_max_abs_diff").get<double>(), 0);
  EXPECT_LT(result.at("plain_max_abs_diff").get<double>(), 1e-2);
}

TEST(MicroBatches, AreThoseOfTheRunThatIsRecordedUnderThePlan) {
  MainJob job;
  job.profile(kHeadHeavy, "2", "sgd", {"--micro-batches", "head=3"});
  std::ofstream(job.plan) << R"({ "schema": "stowage-plan/1", "for": { "trace_file": ")"
                          << job.trace
                          << R"(" }, "recompute": [{"segment": "layers.*"}, {"segment": "head@1"}],
                               "micro_batches": [{"segment": "head", "count": 3}] })";
  const Outcome simulated = stowage({"simulate", job.trace, "--plan", job.plan, "--json"});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const std::string again = job.folder.file("again.json.gz");
  const Outcome recorded = stowage({"profile", "--plan", job.plan, "-o", again, "--json"});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_EQ(recorded.err, "");
  EXPECT_EQ(json::parse(recorded.out).at("peak_requested_bytes"),
            json::parse(simulated.out).at("peak_requested_bytes"));
  job.verify(false);
}

// Such a recording by itself can be planned, too.
TEST(MicroBatches, AreKeptByAPlanOfARecordingInThemAlone) {
  MainJob job;
  job.profile("mlp:layers=3,width=32", "4", "none", {"--micro-batches", "*=2"});
  std::ofstream(job.plan) << R"({ "schema": "stowage-plan/1", "for": { "trace_file": ")"
                          << job.trace
                          << R"(" }, "micro_batches": [{"segment": "*", "count": 2}] })";
  const std::string alone = job.folder.file("alone.json.gz");
  ASSERT_EQ(stowage({"profile", "--plan", job.plan, "-o", alone, "-q"}).code, 0);
  const std::string plan = job.folder.file("alone.plan.json");
  const Outcome planned = stowage({"plan", alone, "--budget", "85%", "-o", plan, "--json"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(json::parse(std::ifstream(plan)).at("micro_batches").size(), 1U);
  const Outcome inspected = stowage({"inspect", alone, "--json"});
  EXPECT_NE(inspected.out.find("the whole step in 2 parts"), std::string::npos);
  // Recorded again without it: as the step in parts that it was made of.
  std::filesystem::remove(alone);
  const Outcome executed = stowage({"execute", "--plan", plan, "--steps", "3", "--json"});
  ASSERT_EQ(executed.code, 0) << executed.err;
  const json result = json::parse(executed.out);
  EXPECT_EQ(result.at("micro_batches"), "the whole step in 2 parts");
  EXPECT_EQ(result.at("measured").at("peak_requested_bytes"),
            result.at("predicted").at("peak_requested_bytes"));
}

TEST(MicroBatches, AreSaidWhereverTheirPlanIs) {
  MainJob job;
  job.profile("mlp:layers=2,width=16", "4", "none", {"--micro-batches", "*=2,4"});
  std::vector<std::string> plans;
  for (const char* count : {"2", "4"}) {
    plans.push_back(job.folder.file(std::string("p") + count + ".json"));
    std::ofstream(plans.back()) << R"({ "schema": "stowage-plan/1", "for": { "trace_file": ")"
                                << job.trace
                                << R"(" }, "micro_batches": [{"segment": "*", "count": )" << count
                                << "}] }";
  }
  const auto says = [](const std::vector<std::string>& args, const std::string& what) {
    const Outcome outcome = stowage(args);
    EXPECT_LE(outcome.code, 1) << outcome.err;
    EXPECT_NE(outcome.out.find(what), std::string::npos) << outcome.out;
  };
  says({"diff", plans[0], plans[1]}, "micro_batches");
  says({"simulate", job.trace, "--plan", plans[1]}, "whole step in 4 parts");
  says({"inspect", job.trace}, "recorded also with the whole step in 4 parts");
  const std::string verified = job.folder.file("v.json");
  const Outcome verify = stowage({"verify", "--plan", plans[1], "--json"});
  ASSERT_EQ(verify.code, 0) << verify.err;
  std::ofstream(verified) << verify.out;
  // Against the step at once, not against the reference, which is divided too.
  const Outcome report =
      stowage({"demo-report", "--trace", job.trace, "--plan", plans[1], "--verify", verified});
  ASSERT_EQ(report.code, 0) << report.err;
  const std::size_t words = report.out.find(" % of the step without a plan");
  ASSERT_NE(words, std::string::npos) << report.out;
  const double share = std::stod(report.out.substr(report.out.rfind(' ', words - 1)));
  EXPECT_GT(std::abs(share - 100), 1) << report.out;
}

// Recorded again with its micro-batches, as everything else of the plan's step.
TEST(MicroBatches, OfAPlanWhoseTraceIsGoneAreRecordedAgain) {
  MainJob job;
  job.profile(kHeadHeavy, "2", "none", {"--micro-batches", "head=4"});
  job.make_plan({"--budget", "60%"});
  std::filesystem::remove(job.trace);
  const Outcome executed =
      stowage({"execute", "--plan", job.plan, "--threads", "1", "--steps", "3", "--json"});
  ASSERT_EQ(executed.code, 0) << executed.err;
  const json result = json::parse(executed.out);
  EXPECT_EQ(result.at("measured").at("peak_requested_bytes"),
            result.at("predicted").at("peak_requested_bytes"));
  const Outcome checked = stowage({"check", "--plan", job.plan, "--steps", "3"});
  EXPECT_EQ(checked.code, 0) << checked.err << checked.out;
}

// The model of a plugin, which has its own copy of tail().
TEST(MicroBatches, OfWhatIsNormalisedOverTheBatchAreOtherTraining) {
  MainJob job;
  const std::string model = "plugin:" STOWAGE_PLUGIN_DIR "/normed.so";
  const auto profile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"profile", model, "--threads", "1", "-o", job.trace};
    args.insert(args.end(), more.begin(), more.end());
    return stowage(args);
  };
  const Outcome divided = profile({"--micro-batches", "*=2"});
  ASSERT_EQ(divided.code, 0) << divided.err;
  EXPECT_NE(divided.err.find("batch_norm normalises over the batch"), std::string::npos)
      << divided.err;
  EXPECT_NE(divided.err.find("the whole step in 2 parts trains otherwise"), std::string::npos);
  const Outcome whole = profile({});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(whole.err.find("normalises"), std::string::npos) << whole.err;
}

TEST(MicroBatches, ThatCannotBeAreRefusedInOneLine) {
  MainJob job;
  const auto profile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"profile", "mlp:layers=2,width=16", "--batch", "4", "-q", "-o",
                                     job.trace};
    args.insert(args.end(), more.begin(), more.end());
    return stowage(args);
  };
  expect_error(profile({"--micro-batches", "head"}), 2, {"head", "names no segment", "head=2,4"});
  expect_error(profile({"--micro-batches", "head=1"}), 2, {"'1' is no number of parts"});
  expect_error(profile({"--micro-batches", "head=2,,4"}), 2, {"'' is no number of parts"});
  expect_error(profile({"--micro-batches", "head=2", "--micro-batches", "head=2"}), 2,
               {"head in 2 parts is named twice"});
  expect_error(profile({"--micro-batches", "head=2"}), 3, {"no part named 'head'"});
  expect_error(profile({"--micro-batches", "*=5"}), 3, {"cannot run in 5 parts: it has 4 samples"});
  EXPECT_FALSE(std::filesystem::exists(job.trace));
  job.profile("mlp:layers=2,width=16", "4", "none", {"--micro-batches", "*=2"});
  std::ofstream(job.plan) << R"({ "schema": "stowage-plan/1", "for": { "trace_file": ")"
                          << job.trace
                          << R"(" }, "micro_batches": [{"segment": "*", "count": 4}] })";
  expect_error(
      stowage({"simulate", job.trace, "--plan", job.plan}), 3,
      {job.plan, "/micro_batches", "not recorded in the micro-batches *=4", "it was in *=2"});
  expect_error(stowage({"profile", "--plan", job.plan, "--micro-batches", "*=2", "-o", job.trace}),
               2, {"--micro-batches with --plan"});
}

}  // namespace
}  // namespace stowage
