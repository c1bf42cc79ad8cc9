// The main job on the built-in models: profile, plan, verify, execute.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::Outcome;
using cli_tests::stowage;
using nlohmann::json;

const std::string kMainJobGpt2 = "gpt2:layers=3,width=64,seq=48,vocab=256";
const std::string kMlp = "mlp:layers=4,width=64";

struct Job : cli_tests::MainJob {
  // A recording in which less leaves when nothing does.
  void profile(const std::string& model, const std::string& batch, const std::string& optimizer) {
    const json result = MainJob::profile(model, batch, optimizer);
    ASSERT_FALSE(result.is_null());
    EXPECT_LT(result.at("passes").at("offload_all").at("peak_requested_bytes"),
              result.at("peak_requested_bytes"));
  }
};

TEST(MainJob, Gpt2FitsInto60Percent) {
  Job job;
  job.profile(kMainJobGpt2, "4", "none");
  job.make_plan({"--budget", "60%"});
  job.verify(true);
}

TEST(MainJob, EachPolicyIsVerifiedOnGpt2) {
  Job job;
  job.profile(kMainJobGpt2, "4", "none");
  for (const std::string policy :
       {"resident", "save_on_cpu", "layerwise", "torchtune", "thunder"}) {
    SCOPED_TRACE(policy);
    job.make_plan({"--policy", policy});
    job.verify(policy != "resident");
  }
}

TEST(MainJob, Gpt2WithAdamwFitsInto70Percent) {
  Job job;
  job.profile(kMainJobGpt2 + ",attention=efficient", "8", "adamw");
  job.make_plan({"--budget", "70%"});
  job.verify(true);
}

TEST(MainJob, MlpWithAdamwFitsInto60Percent) {
  Job job;
  job.profile(kMlp, "512", "adamw");
  job.make_plan({"--budget", "60%"});
  job.verify(true);
}

// Convolutions and batch norms, whose running statistics every step writes; patches; small enough
// that activations outweigh parameters.
class ImageModel : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(ImageModel, FitsInto75PercentAndNearTheFloor) {
  const auto& [model, optimizer] = GetParam();
  Job job;
  ASSERT_NO_FATAL_FAILURE(job.profile(model, "8", optimizer));
  job.make_plan({"--budget", "75%"});
  job.verify(true);
  job.make_plan_near_the_floor();
  job.verify(true);
}

const std::string kResnet = "resnet50:blocks=1-1-1-1,width=8,image=64,classes=10";
const std::string kVit = "vit:layers=2,width=64,patch=8,image=64,classes=10";

INSTANTIATE_TEST_SUITE_P(Small, ImageModel,
                         ::testing::Combine(::testing::Values(kResnet,
                                                              kResnet + ",channels_last=true", kVit,
                                                              kVit + ",attention=math"),
                                            ::testing::Values("sgd", "adamw")));

TEST(MainJob, ThePlannedStepFitsALimitThatTheUnplannedOneDoesNot) {
  Job job;
  job.profile(kMainJobGpt2, "4", "none");
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

// As `simulate` does, whose prediction for it is the same.
TEST(MainJob, ARunAboveABudgetOfItsPlanFails) {
  Job job;
  job.profile(kMainJobGpt2, "4", "none");
  job.make_plan({"--budget", "60%"});
  const json kept = json::parse(cli_tests::read_text(job.plan));
  for (const char* const which : {"host", "device"}) {
    SCOPED_TRACE(which);
    json plan = kept;
    plan.at("budget")["automatic_bytes"] = plan.at("budget").at("device_bytes");
    if (std::string(which) == "device") plan.at("budget").erase("device_bytes");
    plan.at("budget")[which] = "1KiB";
    std::ofstream(job.plan) << plan.dump();
    const std::string words = std::string(which) == "host" ? "above the plan's host budget of 1.02"
                                                           : "above the plan's budget of 1.02 kB";
    EXPECT_EQ(stowage({"simulate", job.trace, "--plan", job.plan}).code, 1);
    for (const char* const verb : {"execute", "verify"}) {
      SCOPED_TRACE(verb);
      const Outcome text = stowage({verb, "--plan", job.plan, "--steps", "3"});
      EXPECT_EQ(text.code, 1) << text.err;
      EXPECT_NE(text.out.find(words), std::string::npos) << text.out;
      const Outcome outcome = stowage({verb, "--plan", job.plan, "--steps", "3", "--json"});
      EXPECT_EQ(outcome.code, 1) << outcome.err;
      const json failures = json::parse(outcome.out).at("failures");
      ASSERT_EQ(failures.size(), 1U) << failures;
      EXPECT_NE(failures[0].get<std::string>().find(words), std::string::npos) << failures;
    }
  }
}

TEST(MainJob, AStepThatDoesNotFitIsRecordedOffloadedAndPlannedAllTheSame) {
  Job job;
  job.profile(kMainJobGpt2, "4", "none");
  const Outcome whole = stowage({"inspect", job.trace, "--json"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const long peak = json::parse(whole.out).at("peak").at("requested_bytes").get<long>();
  const Outcome outcome =
      stowage({"profile", kMainJobGpt2, "--batch", "4", "--threads", "1", "--memory-limit",
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
  plan["budget"] = {{"device", 1000}, {"on", "active"}};
  std::ofstream(job.plan) << plan.dump();
  const Outcome outcome = stowage({"verify", "--plan", job.plan, "--json"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("is above the plan's budget of"), std::string::npos) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("bitwise"), true);
  EXPECT_EQ(result.at("passed"), false);
}

// A page lies at the addresses of all allocations that it serves in turn.
TEST(MainJob, MemoryThatIsTakenAndAddressesThatItIsMappedAtHaveTheirOwnWords) {
  Job job;
  job.profile(kMlp, "64", "none");
  job.make_plan({"--budget", "70%", "--placement", "planned"});
  const Outcome text = stowage({"execute", "--plan", job.plan, "--steps", "3"});
  ASSERT_EQ(text.code, 0) << text.err;
  const Outcome outcome = stowage({"execute", "--plan", job.plan, "--steps", "3", "--json"});
  const json memory = json::parse(outcome.out).at("measured").at("planned_memory");
  EXPECT_NE(text.out.find("bytes) of memory taken ahead, mapped at "), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("bytes) of addresses, "), std::string::npos) << text.out;
  EXPECT_GT(memory.at("mapped_bytes").get<long>(), memory.at("bytes").get<long>());
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
