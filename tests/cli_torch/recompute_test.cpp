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

TEST(Recompute, ALayerThatIsNoneIsNamed) {
  ByHand job;
  job.profile("mlp:layers=2,width=16", "4", "none");
  job.write_plan(R"("recompute": [{"segment": "layer.0"}])");
  cli_tests::expect_error(stowage({"simulate", job.trace, "--plan", job.plan}), 3,
                          {"/recompute/0/segment", "names no layer call", "layers.0"});
}

}  // namespace
}  // namespace stowage
