// Gradients on the host, as a user has them: simulated, executed, verified, compared.
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

// All of them, by hand; what is predicted is measured.
TEST(Gradients, OnTheHostAreTheSameBitForBit) {
  for (const char* optimizer : {"none", "sgd", "adamw"}) {
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + placement);
      MainJob job;
      job.profile("mlp:layers=4,width=256", "8", optimizer);
      job.write_plan(std::string(R"("placement": ")") + placement +
                     R"(", "budget": { "automatic_bytes": 0 },
                             "gradients": [{"layer": "layers.2", "place": "device"},
                                           {"layer": "*", "place": "host"}])");
      const json result = job.verify_exactly();
      EXPECT_LT(result.at("planned").at("peak_requested_bytes"),
                result.at("reference").at("peak_requested_bytes"));
      EXPECT_GT(result.at("planned").at("stored_bytes"), 0);
      EXPECT_EQ(result.at("planned").at("loaded_bytes") > 0, std::string(optimizer) != "none");
      const Outcome simulated = stowage({"simulate", job.trace, "--plan", job.plan});
      ASSERT_EQ(simulated.code, 0) << simulated.err;
      EXPECT_NE(simulated.out.find("Gradients of "), std::string::npos) << simulated.out;
    }
  }
}

// With everything else that moves: parameters, state, saved tensors, layers that run again.
TEST(Gradients, MoveBesideAllElse) {
  MainJob job;
  job.profile("gpt2:layers=2,width=64,seq=64,heads=2,vocab=64", "2", "adamw");
  job.write_plan(R"("budget": { "automatic_bytes": 0 },
    "saved": [{"site": "*", "do": "offload"}],
    "recompute": [{"segment": "layers.1"}],
    "parameters": { "shards": [["layers.0"], ["layers.1"]], "stream": true },
    "gradients": [{"layer": "*", "place": "host"}],
    "optimizer": [{"layer": "*", "state": "stream"}])");
  job.verify_exactly();
}

// The whole step, and a tail of it, in parts: between two of them they are away.
TEST(Gradients, LeaveBetweenMicroBatches) {
  for (const char* parts : {"*=2", "head=2"}) {
    SCOPED_TRACE(parts);
    MainJob job;
    job.profile("gpt2:layers=1,width=32,seq=64,heads=2,vocab=32", "2", "sgd",
                {"--micro-batches", parts});
    const std::string segment = std::string(parts).substr(0, std::string(parts).find('='));
    job.write_plan(R"("budget": { "automatic_bytes": 0 },
      "gradients": [{"layer": "*", "place": "host"}],
      "micro_batches": [{"segment": ")" +
                   segment + R"(", "count": 2}])");
    const json result = job.verify_exactly();
    EXPECT_GT(result.at("planned").at("loaded_bytes"), 0);
  }
}

// Of a step without an optimizer half of what it begins with is gradients.
TEST(Gradients, LeaveWhereNothingElseFits) {
  MainJob job;
  job.profile("mlp:layers=4,width=256", "8", "none");
  const Outcome without =
      stowage({"plan", job.trace, "--budget", "58%", "--deny", "params,gradients", "--json"});
  ASSERT_EQ(without.code, 1) << without.out;
  job.make_plan({"--budget", "58%", "--deny", "params"});
  const json plan = json::parse(std::ifstream(job.plan));
  ASSERT_TRUE(plan.contains("gradients")) << plan;
  EXPECT_EQ(plan.at("gradients")[0].at("place"), "host");
  job.verify(true);
}

TEST(Gradients, ThatAnUpdateUsesUpAreRefused) {
  MainJob job;
  job.profile("mlp:layers=2,width=32", "4", "sgd:update=backward");
  job.write_plan(R"("gradients": [{"layer": "*", "place": "host"}])");
  expect_error(stowage({"simulate", job.trace, "--plan", job.plan}), 3,
               {"/gradients/0/layer", "the trace has no gradients left at the step's end"});
}

TEST(Gradients, OfNoLayerAreRefused) {
  MainJob job;
  job.profile("mlp:layers=2,width=32", "4", "sgd");
  job.write_plan(R"("gradients": [{"layer": "layer.1", "place": "host"}])");
  expect_error(stowage({"simulate", job.trace, "--plan", job.plan}), 3,
               {"/gradients/0/layer", "layers.1"});
  expect_error(stowage({"execute", "--plan", job.plan}), 3, {"/gradients/0/layer"});
}

}  // namespace
}  // namespace stowage
