// verify where the step without the plan does not fit: its reference has everything offloaded.
#include <gtest/gtest.h>

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
using cli_tests::read_text;
using cli_tests::stowage;
using nlohmann::json;

constexpr const char* kWideMlp = "mlp:layers=4,width=256";

// A step that is recorded within and planned for a little over half of what it takes, where its
// state and its saved tensors do not fit beside the rest.
struct TightJob : MainJob {
  std::string limit;
  long resident = 0;

  explicit TightJob(const std::string& optimizer) {
    resident = profile(kWideMlp, "8", optimizer).at("peak_requested_bytes").get<long>();
    limit = std::to_string(resident * 6 / 10);
    const Outcome within =
        stowage({"profile", kWideMlp, "--batch", "8", "--optimizer", optimizer, "--threads", "1",
                 "--device", "cpu", "--memory-limit", limit, "-o", trace});
    EXPECT_EQ(within.code, 0) << within.err;
    make_plan({"--budget", limit});
  }

  [[nodiscard]] Outcome verify_within(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"verify", "--plan", plan, "--memory-limit", limit};
    args.insert(args.end(), more.begin(), more.end());
    return stowage(args);
  }
};

TEST(OffloadedReference, IsTheResidentOneBitByBit) {
  for (const char* optimizer :
       {"adam", "adamw:update=backward", "adamw:master=fp32,update=backward"}) {
    SCOPED_TRACE(optimizer);
    const TightJob job(optimizer);
    const json within = job.verify_exactly({"--memory-limit", job.limit});
    const json& reference = within.at("reference");
    EXPECT_EQ(reference.at("kind"), "offload_all");
    EXPECT_EQ(reference.at("repeatable"), true);
    EXPECT_EQ(reference.at("too_large").at("resident_bytes"), job.resident);
    EXPECT_EQ(reference.at("too_large").at("limit_bytes"), std::stol(job.limit));
    EXPECT_LE(reference.at("peak_requested_bytes").get<long>(), std::stol(job.limit));
    EXPECT_TRUE(reference.at("step_ns").is_null());
    EXPECT_EQ(reference.at("losses").size(), 4u);  // those that are compared

    // The plan is compared with one that keeps everything, too: so the two references are equal.
    const json without = job.verify_exactly();
    EXPECT_EQ(without.at("reference").at("kind"), "resident");
    EXPECT_TRUE(without.at("reference").at("too_large").is_null());
    EXPECT_EQ(without.at("compared_tensors"), within.at("compared_tensors"));
    EXPECT_EQ(without.at("reference").at("losses")[3], reference.at("losses")[3]);
  }
}

TEST(OffloadedReference, IsNotRunWhereTheStepFits) {
  const TightJob job("adamw:update=backward");
  for (const long more : {0L, -1L}) {
    const Outcome outcome = stowage({"verify", "--plan", job.plan, "--memory-limit",
                                     std::to_string(job.resident + more), "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(json::parse(outcome.out).at("reference").at("kind"),
              more == 0 ? "resident" : "offload_all");
  }
}

// What the blocks save is made again in backward: below the same step in parts with all of it kept.
TEST(OffloadedReference, HasThePlansMicroBatches) {
  MainJob job;
  job.profile("gpt2:layers=4,width=64,seq=32,vocab=128", "8", "sgd", {"--micro-batches", "*=2"});
  job.write_plan(R"("recompute": [{"segment": "layers.*"}],
                    "micro_batches": [{"segment": "*", "count": 2}])");
  const Outcome simulated = stowage({"simulate", job.trace, "--plan", job.plan, "--json"});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const long peak = json::parse(simulated.out).at("peak_requested_bytes").get<long>();
  const json within = job.verify_exactly({"--memory-limit", std::to_string(peak)});
  EXPECT_EQ(within.at("micro_batches"), "the whole step in 2 parts");
  EXPECT_EQ(within.at("reference").at("kind"), "offload_all");
  const json without = job.verify_exactly();
  EXPECT_EQ(without.at("reference").at("kind"), "resident");
  EXPECT_EQ(without.at("reference").at("peak_requested_bytes"),
            within.at("reference").at("too_large").at("resident_bytes"));
}

TEST(OffloadedReference, IsNamedInTheText) {
  const TightJob job("adamw:update=backward");
  const Outcome outcome = job.verify_within();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("  reference   everything offloaded, op by op"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("without the plan"), std::string::npos) << outcome.out;
}

// The last byte of the file's dump belongs to the digest of the last tensor of the last step.
TEST(OffloadedReference, ThatDiffersFails) {
  const TightJob job("adamw:update=backward");
  const std::string kept = job.folder.file("kept.json");
  ASSERT_EQ(job.verify_within({"--reference", kept}).code, 0);
  const Outcome reused = job.verify_within({"--reference", kept, "--json"});
  ASSERT_EQ(reused.code, 0) << reused.err;
  const json reference = json::parse(reused.out).at("reference");
  EXPECT_EQ(reference.at("reused"), true);
  EXPECT_EQ(reference.at("kind"), "offload_all");

  json file = json::parse(read_text(kept));
  std::string dump = file.at("dump").get<std::string>();
  dump.back() = dump.back() == '0' ? '1' : '0';
  file["dump"] = dump;
  std::ofstream(kept) << file.dump();
  const Outcome damaged = job.verify_within({"--reference", kept, "--json"});
  EXPECT_EQ(damaged.code, 1) << damaged.err;
  EXPECT_EQ(json::parse(damaged.out).at("differing_tensors"), 1);

  const Outcome other = job.verify_within({"--reference", kept, "--seed", "2", "--json"});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_NE(other.err.find("seed (1, now 2)"), std::string::npos) << other.err;
  EXPECT_EQ(json::parse(other.out).at("reference").at("reused"), false);
}

// Gradients stay on the device while everything else is away: with updates behind backward they
// are all there at once, a quarter of this step, and a limit below them is too low.
TEST(OffloadedReference, ThatDoesNotFitEitherSaysSo) {
  const TightJob job("adamw");
  job.write_plan(
      R"("budget": { "automatic_bytes": 0 }, "parameters": { "shards": [["layers.*"]], "stream": true },
                    "optimizer": [{"layer": "*", "state": "stream"}],
                    "gradients": [{"layer": "*", "place": "host"}])");
  const json alone = job.verify_exactly();
  const long planned = alone.at("planned").at("peak_requested_bytes").get<long>();
  const Outcome refused =
      stowage({"verify", "--plan", job.plan, "--memory-limit", std::to_string(planned)});
  expect_error(
      refused, 1,
      {"the reference, with everything offloaded, runs out of memory", "without --memory-limit"});
}

}  // namespace
}  // namespace stowage
