// The main job as a user runs it, with the real commands: profile, plan, verify, execute.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace stowage {
namespace {

using cli_tests::Command;
using cli_tests::Outcome;
using cli_tests::TemporaryFolder;
using nlohmann::json;

Outcome stowage(const std::vector<std::string>& args) {
  Command command;
  command.args = args;
  return cli_tests::run(command);
}

const std::string kGpt2 = "gpt2:layers=3,width=64,seq=48,vocab=256";
const std::string kMlp = "mlp:layers=4,width=64";

struct Job {
  TemporaryFolder folder;
  std::string trace = folder.file("t.json.gz");
  std::string plan = folder.file("p.json");

  void profile(const std::string& model, const std::string& batch, const std::string& optimizer) {
    const Outcome outcome = stowage({"profile", model, "--batch", batch, "--optimizer", optimizer,
                                     "--threads", "1", "--device", "cpu", "-o", trace, "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json result = json::parse(outcome.out);
    EXPECT_EQ(result.at("schema"), "stowage-profile/1");
    EXPECT_EQ(result.at("passes").at("clean").at("peak_requested_bytes"),
              result.at("passes").at("structure").at("peak_requested_bytes"));
    EXPECT_LT(result.at("passes").at("offload_all").at("peak_requested_bytes"),
              result.at("peak_requested_bytes"));
  }

  void make_plan(const std::vector<std::string>& options) {
    std::vector<std::string> args = {"plan", trace, "-o", plan};
    args.insert(args.end(), options.begin(), options.end());
    const Outcome outcome = stowage(args);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  // Bitwise, and the peak as predicted to the byte. `moves`: the plan takes something away.
  void verify(bool moves) {
    const Outcome outcome = stowage({"verify", "--plan", plan, "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    const json result = json::parse(outcome.out);
    EXPECT_EQ(result.at("schema"), "stowage-verify/1");
    EXPECT_EQ(result.at("passed"), true);
    EXPECT_EQ(result.at("bitwise"), true);
    EXPECT_EQ(result.at("max_abs_diff"), 0.0);
    EXPECT_GT(result.at("compared_tensors").get<int>(), 10);
    EXPECT_EQ(result.at("reference").at("repeatable"), true);
    EXPECT_EQ(result.at("planned").at("peak_requested_bytes"),
              result.at("predicted").at("peak_requested_bytes"));
    EXPECT_EQ(result.at("error").at("peak_requested_bytes"), 0);
    EXPECT_TRUE(result.at("planned").at("peak_reserved_bytes").is_null());
    EXPECT_EQ(result.at("planned").at("losses"), result.at("reference").at("losses"));
    EXPECT_EQ(result.at("planned").at("host_bytes").get<long>() > 0, moves);
  }
};

TEST(MainJob, Gpt2FitsInto60Percent) {
  Job job;
  job.profile(kGpt2, "4", "none");
  job.make_plan({"--budget", "60%"});
  job.verify(true);
}

TEST(MainJob, EachPolicyIsVerifiedOnGpt2) {
  Job job;
  job.profile(kGpt2, "4", "none");
  for (const std::string policy :
       {"resident", "save_on_cpu", "layerwise", "torchtune", "thunder"}) {
    SCOPED_TRACE(policy);
    job.make_plan({"--policy", policy});
    job.verify(policy != "resident");
  }
}

TEST(MainJob, Gpt2WithAdamwFitsInto70Percent) {
  Job job;
  job.profile(kGpt2 + ",attention=efficient", "8", "adamw");
  job.make_plan({"--budget", "70%"});
  job.verify(true);
}

TEST(MainJob, MlpWithAdamwFitsInto60Percent) {
  Job job;
  job.profile(kMlp, "512", "adamw");
  job.make_plan({"--budget", "60%"});
  job.verify(true);
}

TEST(MainJob, ThePlannedStepFitsALimitThatTheUnplannedOneDoesNot) {
  Job job;
  job.profile(kGpt2, "4", "none");
  job.make_plan({"--budget", "60%"});
  const json plan = json::parse(cli_tests::read_text(job.plan));
  const std::string limit = std::to_string(plan.at("budget").at("device_bytes").get<long>());
  const Outcome planned =
      stowage({"execute", "--plan", job.plan, "--memory-limit", limit, "--json"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const json result = json::parse(planned.out);
  EXPECT_EQ(result.at("error").at("peak_requested_bytes"), 0);
  EXPECT_EQ(result.at("steps").size(), 10U);

  const std::string resident = job.folder.file("resident.json");
  ASSERT_EQ(stowage({"plan", job.trace, "--policy", "resident", "-o", resident}).code, 0);
  const Outcome unplanned = stowage({"execute", "--plan", resident, "--memory-limit", limit});
  EXPECT_EQ(unplanned.code, 1);
  EXPECT_NE(unplanned.err.find("out of memory"), std::string::npos) << unplanned.err;
}

TEST(MainJob, AStepThatDoesNotFitIsRecordedOffloadedAndPlannedAllTheSame) {
  Job job;
  job.profile(kGpt2, "4", "none");
  const Outcome whole = stowage({"inspect", job.trace, "--json"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const long peak = json::parse(whole.out).at("peak").at("requested_bytes").get<long>();
  const Outcome outcome =
      stowage({"profile", kGpt2, "--batch", "4", "--threads", "1", "--memory-limit",
               std::to_string(peak - 1), "-o", job.trace, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("runs out of memory with everything kept"), std::string::npos)
      << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("everything_offloaded"), true);
  EXPECT_EQ(result.at("peak_requested_bytes"), peak);
  EXPECT_TRUE(result.at("step_ns").is_null());
  EXPECT_TRUE(result.at("gpu").is_null());
  job.make_plan({"--budget", "60%"});
  job.verify(true);
}

TEST(MainJob, AMemoryLimitThatTheStepFitsChangesNothing) {
  Job job;
  const Outcome outcome = stowage({"profile", kMlp, "--batch", "64", "--threads", "1",
                                   "--memory-limit", "1GB", "-o", job.trace, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("everything_offloaded"), false);
}

// The policy's plan with a budget written into it afterwards that no step of this size meets.
TEST(MainJob, APeakAboveThePlansBudgetFailsTheVerification) {
  Job job;
  job.profile(kMlp, "64", "none");
  job.make_plan({"--policy", "resident"});
  json plan = json::parse(cli_tests::read_text(job.plan));
  plan["budget"] = {{"device_bytes", 1000}, {"on", "active"}};
  std::ofstream(job.plan) << plan.dump();
  const Outcome outcome = stowage({"verify", "--plan", job.plan, "--json"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("is above the plan's budget of"), std::string::npos) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("bitwise"), true);
  EXPECT_EQ(result.at("passed"), false);
}

TEST(MainJob, AStepWhoseTraceIsGoneIsRecordedAgain) {
  Job job;
  job.profile(kMlp, "512", "none");
  job.make_plan({"--budget", "70%"});
  ASSERT_EQ(std::remove(job.trace.c_str()), 0);
  const Outcome outcome = stowage({"verify", "--plan", job.plan, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("recording the step again"), std::string::npos) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("bitwise"), true);
}

}  // namespace
}  // namespace stowage
