// Usual training loops as a user has them, recorded, planned and verified: momentum, a schedule of
// the learning rate, gradients that are kept, a tail and shards in micro-batches.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::expect_error;
using cli_tests::MainJob;
using cli_tests::stowage;
using nlohmann::json;

constexpr const char* kMlp = "mlp:layers=4,width=64";
constexpr const char* kGpt2 = "gpt2:layers=4,width=32,seq=32,vocab=600";

std::string placed(const std::string& placement, const std::string& rest) {
  return R"("placement": ")" + placement + R"(", )" + rest;
}

// The buffer is at home before there is a gradient that PyTorch would make it of.
TEST(TrainingLoops, MomentumIsAtHomeBeforeTheFirstStep) {
  for (const char* optimizer :
       {"sgd:weight_decay=0.01,momentum=0.9,dampening=0.5", "sgd:update=backward,momentum=0.9",
        "sgd:master=fp32,momentum=0.9,nesterov=true"}) {
    MainJob job;
    job.profile(kMlp, "8", optimizer);
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + placement);
      job.write_plan(placed(placement, R"("optimizer": [{"layer": "layers.2", "state": "device"},
                                                        {"layer": "*", "state": "stream"}])"));
      const json result = job.verify_exactly();
      EXPECT_GT(result.at("planned").at("loaded_bytes"), 0);
    }
  }
}

TEST(TrainingLoops, ARateThatRisesAndFallsIsOneTraining) {
  MainJob job;
  job.profile(kMlp, "8", "adamw:lr=0.01,warmup=3,decay=cosine,total=8");
  job.make_plan({"--budget", "70%"});
  job.verify(true);
  job.write_plan(R"("optimizer": [{"layer": "*", "state": "host", "step": "host"}])");
  const json on_host = job.verify_exactly();
  // Without the schedule it is another training, whose loss is another one from the second step on.
  MainJob other;
  other.profile(kMlp, "8", "adamw:lr=0.01");
  other.write_plan(R"("optimizer": [{"layer": "*", "state": "stream"}])");
  EXPECT_NE(other.verify_exactly().at("planned").at("losses"), on_host.at("planned").at("losses"));
}

// From the first step on, which makes them; in planned memory at the place that later ones have
// them in.
TEST(TrainingLoops, GradientsThatAreKeptAreExact) {
  for (const char* model : {kMlp, kGpt2}) {
    MainJob job;
    job.profile(model, "8", "adamw:clip=1,set_to_none=false");
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(std::string(model) + " " + placement);
      job.write_plan(placed(placement, R"("parameters": {"shards": [["layers.*"]], "stream": true},
          "optimizer": [{"layer": "*", "state": "stream"}],
          "saved": [{"site": "*", "do": "offload"}])"));
      EXPECT_GT(job.verify_exactly().at("planned").at("loaded_bytes"), 0);
    }
    // What cannot go with it stays, which is said.
    job.make_plan({"--policy", "zero_offload"});
    const auto said = stowage({"simulate", job.trace, "--plan", job.plan});
    EXPECT_NE(said.err.find("it is kept from step to step"), std::string::npos) << said.err;
    EXPECT_EQ(said.out.find("on the host"), std::string::npos) << said.out;
    job.verify_exactly();
  }
}

TEST(TrainingLoops, TheTailInTheBestPartsIsBitwise) {
  MainJob job;
  job.profile(kGpt2, "4", "sgd:momentum=0.9", {"--micro-batches", "head=2,4"});
  job.make_plan({"--policy", "tail_accumulation"});
  EXPECT_EQ(json::parse(std::ifstream(job.plan)).at("micro_batches"),
            json::parse(R"([{"segment": "head", "count": 4}])"));
  job.verify_exactly();
  MainJob at_once;
  at_once.profile(kMlp, "8", "sgd");
  expect_error(stowage({"plan", at_once.trace, "--policy", "tail_accumulation"}), 3,
               {"was not recorded with its tail in parts"});
}

TEST(TrainingLoops, ShardsInTheirFormsAreBitwise) {
  MainJob job;
  job.profile(kGpt2, "4", "adamw", {"--micro-batches", "*=2"});
  for (const char* policy : {"fairscale:shards=2", "fairscale:at=layers.1+layers.3",
                             "fairscale:recompute=no", "fairscale:shards=2,micro_batches=2"}) {
    SCOPED_TRACE(policy);
    job.make_plan({"--policy", policy});
    const json result = job.verify_exactly();
    EXPECT_GT(result.at("planned").at("loaded_bytes"), 0);
  }
  expect_error(stowage({"plan", job.trace, "--policy", "fairscale:micro_batches=4"}), 3,
               {"policy fairscale: the step was not recorded in the micro-batches *=4"});
  MainJob mixed;
  mixed.profile(kGpt2, "4", "adamw", {"--autocast", "bf16"});
  mixed.make_plan({"--policy", "fairscale:shards=2"});
  mixed.verify_exactly();
}

}  // namespace
}  // namespace stowage
