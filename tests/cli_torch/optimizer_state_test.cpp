// Optimizer state that streams, as a user has it: found by auto, verified, simulated, inspected.
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

// Of four times its parameters' bytes half is state.
constexpr const char* kWide = "mlp:layers=4,width=256";

// It streams, or the host updates with it, whichever is faster on this machine.
TEST(OptimizerState, LeavesWhereNothingElseFits) {
  MainJob job;
  job.profile(kWide, "8", "adamw");
  const Outcome without =
      stowage({"plan", job.trace, "--budget", "60%", "--deny", "optimizer,gradients", "--json"});
  ASSERT_EQ(without.code, 1) << without.out;
  EXPECT_NE(without.err.find("(offload and recompute and params)"), std::string::npos)
      << without.err;
  job.make_plan({"--budget", "60%"});
  const json plan = json::parse(std::ifstream(job.plan));
  ASSERT_TRUE(plan.contains("optimizer")) << plan;
  const bool streams = plan.at("optimizer")[0].at("state") == "stream";
  EXPECT_TRUE(streams || plan.at("optimizer")[0].at("state") == "host") << plan;
  job.verify(true);
  const Outcome simulated = stowage({"simulate", job.trace, "--plan", job.plan});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_NE(simulated.out.find(streams ? "Optimizer state of " : "are updated on the host"),
            std::string::npos)
      << simulated.out;
}

// By hand, all of it; the state is there before a step has made it.
TEST(OptimizerState, IsAtHomeBeforeTheFirstStep) {
  for (const char* optimizer : {"adam", "adamw"}) {
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + placement);
      MainJob job;
      const json recorded = job.profile(kWide, "8", optimizer);
      job.write_plan(std::string(R"("placement": ")") + placement +
                     R"(", "optimizer": [{"layer": "layers.2", "state": "device"},
                                         {"layer": "*", "state": "stream"}])");
      const json result = job.verify_exactly();
      EXPECT_EQ(result.at("planned").at("loaded_bytes"), result.at("planned").at("stored_bytes"));
      EXPECT_GT(result.at("planned").at("loaded_bytes"), 0);
    }
  }
}

// Masters and moments in fp32 of parameters in bf16, which stream themselves: made at home from the
// parameters ahead of the first step.
TEST(OptimizerState, OfMastersIsMadeOfTheParameters) {
  for (const char* placement : {"caching", "planned"}) {
    SCOPED_TRACE(placement);
    MainJob job;
    job.profile(kWide, "8", "adamw:master=fp32", {"--dtype", "bf16"});
    job.write_plan(std::string(R"("placement": ")") + placement +
                   R"(", "parameters": { "shards": [["layers.*"]], "stream": true },
                        "optimizer": [{"layer": "*", "state": "stream"}])");
    const json result = job.verify_exactly();
    EXPECT_GT(result.at("planned").at("loaded_bytes"), result.at("planned").at("stored_bytes"));
  }
}

TEST(OptimizerState, OfNoOptimizerIsRefused) {
  MainJob job;
  job.profile("mlp:layers=2,width=32", "4", "sgd");
  job.write_plan(R"("optimizer": [{"layer": "*", "state": "stream"}])");
  for (const char* verb : {"simulate", "execute"}) {
    const Outcome refused = std::string(verb) == "simulate"
                                ? stowage({"simulate", job.trace, "--plan", job.plan})
                                : stowage({"execute", "--plan", job.plan});
    expect_error(refused, 3, {"/optimizer/0/layer", "the trace has no optimizer state"});
  }
}

}  // namespace
}  // namespace stowage
