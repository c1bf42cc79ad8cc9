// Plans whose segments run again, as a user runs them: profile, a plan by hand, simulate, verify.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::Outcome;
using cli_tests::stowage;
using nlohmann::json;

struct ByHand : cli_tests::MainJob {
  void write_plan(const std::string& parts) const {
    std::ofstream(plan) << R"({ "schema": "stowage-plan/1", )"
                        << R"("for": { "trace_file": ")" << trace << R"(" }, )" << parts << " }";
  }
  [[nodiscard]] json simulate() const {
    const Outcome outcome = stowage({"simulate", trace, "--plan", plan, "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
};

TEST(Recompute, LayersOfGpt2RunAgainAndAreVerified) {
  ByHand job;
  job.profile("gpt2:layers=3,width=64,seq=48,vocab=256", "4", "adamw");
  job.write_plan(R"("recompute": [{"segment": "layers.*", "boundary": "offload"}])");
  const json result = job.simulate();
  ASSERT_FALSE(result.is_null());
  EXPECT_LT(result.at("peak_requested_bytes"), result.at("resident").at("peak_requested_bytes"));
  EXPECT_GT(result.at("step_ns"), result.at("resident").at("step_ns"));
  job.verify(true);
}

// Two groups of two layers, whose layers run again by themselves behind their group.
TEST(Recompute, LayersWithinGroupsOfLayersRunAgainAndAreVerified) {
  ByHand job;
  job.profile("gpt2:layers=4,width=64,seq=48,vocab=256,dropout=0.1", "4", "adamw");
  job.write_plan(R"("recompute": [{"segment": "layers.*", "each": 2, "boundary": "offload",
                                   "within": [{"segment": "layers.?"}]}])");
  const json predicted = job.simulate();
  ASSERT_FALSE(predicted.is_null());
  job.verify(true);
  const std::string again = job.folder.file("again.json.gz");
  const Outcome recorded = stowage({"profile", "--plan", job.plan, "-o", again, "-q", "--json"});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const Outcome inspected = stowage({"inspect", again, "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  const json report = json::parse(inspected.out);
  int backwards = 0;
  for (const json& phase : report.at("phases")) backwards += phase.at("kind") == "backward" ? 1 : 0;
  EXPECT_GE(backwards, 4) << "behind each layer's run backward goes on";
}

TEST(Recompute, ARecordingUnderAPlanThatRunsNothingAgainSaysSo) {
  ByHand job;
  job.profile("mlp:layers=3,width=64", "4", "none");
  job.write_plan(R"("saved": [{"site": "*", "do": "keep"}])");
  const std::string again = job.folder.file("again.json.gz");
  const Outcome outcome = stowage({"profile", "--plan", job.plan, "-o", again});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing runs again or in micro-batches under the plan"),
            std::string::npos)
      << outcome.err;
}

// The run under a plan, recorded, has the peak that was predicted for it.
TEST(Recompute, ARunUnderAPlanIsRecorded) {
  ByHand job;
  job.profile("gpt2:layers=3,width=64,seq=48,vocab=256,dropout=0.1", "4", "adamw");
  job.write_plan(R"("saved": [{"site": "layers.2.mlp#8", "do": "recompute", "by": "ops"}],
                    "recompute": [{"segment": "layers.[0-1]", "each": "run"}])");
  const json predicted = job.simulate();
  ASSERT_FALSE(predicted.is_null());
  const std::string again = job.folder.file("again.json.gz");
  const Outcome recorded = stowage({"profile", "--plan", job.plan, "-o", again, "--json"});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_EQ(recorded.err, "") << "the plan moves nothing";
  const json figures = json::parse(recorded.out);
  EXPECT_EQ(figures.at("peak_requested_bytes"), predicted.at("peak_requested_bytes"));
  EXPECT_EQ(figures.at("passes").at("clean").at("peak_requested_bytes"),
            predicted.at("peak_requested_bytes"));

  const Outcome inspected = stowage({"inspect", again, "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  const json report = json::parse(inspected.out);
  int runs = 0;
  for (const json& phase : report.at("phases")) {
    runs += phase.at("kind") == "recompute" ? 1 : 0;
  }
  EXPECT_GE(runs, 2);
  const Outcome replayed = stowage({"simulate", again, "--json"});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_EQ(json::parse(replayed.out).at("peak_requested_bytes"),
            predicted.at("peak_requested_bytes"));
  cli_tests::expect_error(stowage({"plan", again, "--budget", "90%"}), 3,
                          {again, "computes again under a plan already"});
  // Nor is it made to compute again once more.
  for (const char* policy : {"selective", "checkpoint"}) {
    cli_tests::expect_error(stowage({"simulate", again, "--policy", policy}), 3,
                            {"computes again under a plan already"});
  }
}

TEST(Recompute, RecordingsUnderAPlanAreOfThatPlansRun) {
  ByHand job;
  job.profile("mlp:layers=2,width=16", "4", "none");
  job.write_plan(R"("recompute": [{"segment": "layers.0"}],
                    "saved": [{"site": "layers.1#*", "do": "offload"}])");
  const std::string again = job.folder.file("again.json.gz");
  const Outcome moved = stowage({"profile", "--plan", job.plan, "-o", again});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_NE(moved.err.find("what the plan moves stays"), std::string::npos) << moved.err;
  const auto refused = [&](const std::vector<std::string>& more, int code,
                           const std::vector<std::string>& words) {
    std::vector<std::string> args = {"profile", "--plan", job.plan, "-o", job.folder.file("n.gz")};
    args.insert(args.end(), more.begin(), more.end());
    cli_tests::expect_error(stowage(args), code, words);
  };
  refused({"--batch", "8"}, 2, {"--batch 8", "contradicts"});
  refused({"gpt2"}, 2, {"gpt2", "is not the plan's model"});
  cli_tests::expect_error(stowage({"profile", "-o", again}), 2, {"no MODEL", "--plan"});
  cli_tests::expect_error(stowage({"profile", "--plan", "-", "-o", again}), 2, {"give files"});
  cli_tests::expect_error(stowage({"profile", "mlp", "--trace", job.trace, "-o", again}), 2,
                          {"--trace without --plan"});
  job.trace = job.folder.file("gone.json.gz");
  job.write_plan(R"("recompute": [{"segment": "layers.0"}])");
  cli_tests::expect_error(stowage({"profile", "--plan", job.plan, "-o", again}), 2,
                          {"/for", "is not there", "--trace FILE"});
}

TEST(Recompute, ALayerThatIsNoneIsNamed) {
  ByHand job;
  job.profile("mlp:layers=2,width=16", "4", "none");
  job.write_plan(R"("recompute": [{"segment": "layer.0"}])");
  cli_tests::expect_error(stowage({"simulate", job.trace, "--plan", job.plan}), 3,
                          {"/recompute/0/segment", "names no layer call", "layers.0"});
}

}  // namespace
}  // namespace stowage
