// In which numbers a step computes, as a user has it: autocast, gradient scaler, clipping.
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

// Everything that a plan of it moves, and layers that run again.
constexpr const char* kAll = R"("budget": { "automatic_bytes": 0 },
    "saved": [{"site": "*", "do": "offload"}],
    "recompute": [{"segment": "layers.1"}],
    "parameters": { "shards": [["layers.0"], ["layers.1"]], "stream": true },
    "gradients": [{"layer": "*", "place": "host"}],
    "optimizer": [{"layer": "*", "state": "stream"}])";

TEST(Autocast, StepsOfEachModelAreVerified) {
  for (const char* model :
       {"mlp:layers=2,width=64", "gpt2:layers=2,width=64,heads=2,seq=16,vocab=64",
        "llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,vocab=64,seq=16",
        "vit:layers=2,width=32,heads=2,patch=8,image=32,classes=10"}) {
    SCOPED_TRACE(model);
    MainJob job;
    job.profile(model, "2", "adamw", {"--autocast", "bf16"});
    job.write_plan(kAll);
    const json result = job.verify_exactly();
    EXPECT_GT(result.at("planned").at("stored_bytes"), 0);
  }
}

TEST(Autocast, IsFoundAndNamedAllAlong) {
  MainJob job;
  job.profile("gpt2:layers=2,width=64,heads=2,seq=16,vocab=64", "2", "sgd", {"--autocast", "fp16"});
  const Outcome inspected = stowage({"inspect", job.trace, "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_NE(inspected.out.find(R"("autocast": "fp16")"), std::string::npos) << inspected.out;
  job.make_plan({"--budget", "70%"});
  const json plan = json::parse(std::ifstream(job.plan));
  EXPECT_EQ(plan.at("for").at("autocast"), "fp16");
  job.verify(true);
  expect_error(stowage({"verify", "--plan", job.plan, "--autocast", "bf16"}), 2,
               {"--autocast bf16 contradicts the recorded step (fp16)"});
  expect_error(stowage({"verify", "--plan", job.plan, "--autocast", "none"}), 2,
               {"--autocast none contradicts the recorded step (fp16)"});
}

TEST(Autocast, OfAnotherStepIsRefused) {
  MainJob plain;
  plain.profile("mlp:layers=2,width=64", "4", "sgd");
  MainJob cast;
  cast.profile("mlp:layers=2,width=64", "4", "sgd", {"--autocast", "bf16"});
  plain.make_plan({"--budget", "90%"});
  expect_error(stowage({"verify", "--plan", plain.plan, "--trace", cast.trace}), 3,
               {"the plan is for autocast none, the trace is of autocast 'bf16'"});
  expect_error(stowage({"execute", "--plan", plain.plan, "--autocast", "bf16"}), 2,
               {"--autocast bf16 contradicts the recorded step (none)"});
  expect_error(stowage({"profile", "mlp", "--autocast", "fp8", "-o", plain.trace}), 2,
               {"unknown autocast 'fp8'"});
}

// A tail in parts, and the whole step, under autocast.
TEST(Autocast, GoesWithMicroBatches) {
  for (const char* segment : {"head", "*"}) {
    MainJob job;
    job.profile("gpt2:layers=1,width=32,heads=2,seq=16,vocab=32", "2", "sgd",
                {"--autocast", "bf16", "--micro-batches", std::string(segment) + "=2"});
    job.write_plan(std::string(R"("saved": [{"site": "*", "do": "offload"}],
                                  "micro_batches": [{"segment": ")") +
                   segment + R"(", "count": 2}])");
    job.verify_exactly();
  }
}

// The first step's scale overflows fp32, so that its update is skipped; the next ones are taken.
// With everything that moves: the reference skips the same one.
TEST(GradScaler, SkippedStepsAreVerified) {
  for (const char* optimizer : {"sgd", "adamw", "adamw:clip=0.01,lr=0.01"}) {
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + placement);
      MainJob job;
      job.profile("gpt2:layers=2,width=64,heads=2,seq=16,vocab=64", "2", optimizer,
                  {"--grad-scaler", "init=3e38,backoff=1e-30"});
      std::string all = kAll;
      if (std::string(optimizer) == "sgd")
        all = all.substr(0, all.find(R"(,
    "optimizer")"));
      job.write_plan(std::string(R"("placement": ")") + placement + "\", " + all);
      job.verify_exactly();
    }
  }
}

// In each of its steps: backing off takes longer than the warm-up.
TEST(GradScaler, AStepThatOverflowsIsNotRecorded) {
  MainJob job;
  expect_error(stowage({"profile", "gpt2:layers=1,width=32,heads=2,seq=16,vocab=32", "--batch", "2",
                        "--device", "cpu", "--optimizer", "sgd", "--grad-scaler",
                        "init=3e38,backoff=0.999", "-o", job.trace}),
               1, {"the gradients of the recorded step overflow", "a smaller init"});
}

TEST(GradScaler, IsRefusedWhereItCannotBe) {
  MainJob job;
  expect_error(stowage({"profile", "mlp", "--grad-scaler", "on", "-o", job.trace}), 2,
               {"--grad-scaler without an optimizer"});
  expect_error(stowage({"profile", "mlp", "--grad-scaler", "on", "--optimizer",
                        "adamw:update=backward", "-o", job.trace}),
               2, {"--grad-scaler with update=backward"});
  expect_error(
      stowage({"profile", "mlp", "--grad-scaler", "grow=2", "--optimizer", "sgd", "-o", job.trace}),
      2, {"has no option 'grow=2'"});
  job.profile("mlp:layers=2,width=64", "4", "sgd", {"--grad-scaler", "init=8"});
  job.make_plan({"--budget", "90%"});
  expect_error(stowage({"verify", "--plan", job.plan, "--grad-scaler", "init=16"}), 2,
               {"contradicts the recorded step (init=8,growth=2,backoff=0.5,interval=2000)"});
}

}  // namespace
}  // namespace stowage
