// Updates in backward, and a step whose model state does not fit, as a user has them: recorded,
// planned, verified.
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
using cli_tests::stowage;
using nlohmann::json;

// Of four times its parameters' bytes half is state.
constexpr const char* kWideMlp = "mlp:layers=4,width=256";

// Everything but one layer's state streams, loaded on demand, so that peaks do not hang on recorded
// times; that one's is made in its first update.
void write_streaming_plan(const MainJob& job, const char* placement) {
  job.write_plan(std::string(R"("budget": { "automatic_bytes": 0 }, "placement": ")") + placement +
                 R"(", "parameters": { "shards": [["layers.*"]], "stream": true },
                      "optimizer": [{"layer": "layers.2", "state": "device"},
                                    {"layer": "*", "state": "stream"}])");
}

TEST(BackwardUpdates, StreamAllModelState) {
  for (const char* optimizer : {"adamw:update=backward", "adam:master=fp32,update=backward"}) {
    MainJob job;
    const json recorded = job.profile(kWideMlp, "8", optimizer);
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + placement);
      write_streaming_plan(job, placement);
      const json result = job.verify_exactly();
      EXPECT_LT(result.at("planned").at("peak_requested_bytes").get<long>(),
                recorded.at("peak_requested_bytes").get<long>() / 2);
    }
  }
}

TEST(BackwardUpdates, OfSgdArePlannedByAuto) {
  MainJob job;
  const json behind = job.profile(kWideMlp, "8", "sgd");
  const json inside = job.profile(kWideMlp, "8", "sgd:update=backward");
  EXPECT_LT(inside.at("peak_requested_bytes"), behind.at("peak_requested_bytes"));
  job.make_plan({"--budget", "70%"});
  const json plan = json::parse(std::ifstream(job.plan));
  EXPECT_EQ(plan.at("for").at("optimizer"), "sgd:update=backward");
  EXPECT_TRUE(plan.contains("parameters")) << plan;
  job.verify_exactly({"--optimizer", "sgd:update=backward"});
}

TEST(BackwardUpdates, AreNamedInOneForm) {
  MainJob job;
  job.profile(kWideMlp, "8", "adamw:update=backward,master=fp32");
  job.make_plan({"--budget", "80%"});
  const json plan = json::parse(std::ifstream(job.plan));
  EXPECT_EQ(plan.at("for").at("optimizer"), "adamw:master=fp32,update=backward");
  job.verify_exactly({"--optimizer", "adamw:update=backward,master=fp32"});
  const Outcome other = stowage({"verify", "--plan", job.plan, "--optimizer", "adamw"});
  expect_error(other, 2, {"contradicts the recorded step (adamw:master=fp32,update=backward)"});
}

TEST(BackwardUpdates, DoNotGoWithMicroBatches) {
  MainJob job;
  const Outcome refused =
      stowage({"profile", kWideMlp, "--batch", "8", "--device", "cpu", "--optimizer",
               "sgd:update=backward", "--micro-batches", "*=2", "-o", job.trace});
  expect_error(refused, 2, {"a parameter would be updated by a part of its gradient"});
}

// Half of what the step takes: neither its state nor its saved tensors would fit with the rest.
TEST(RecordingWhatDoesNotFit, IsTheRecordingOfALargerDevice) {
  for (const char* optimizer : {"adamw", "adamw:master=fp32,update=backward"}) {
    SCOPED_TRACE(optimizer);
    MainJob large;
    const json whole = large.profile(kWideMlp, "8", optimizer);
    const long peak = whole.at("peak_requested_bytes").get<long>();
    const std::string limit = std::to_string(peak * 11 / 20);
    MainJob small;
    const Outcome profiled =
        stowage({"profile", kWideMlp, "--batch", "8", "--optimizer", optimizer, "--threads", "1",
                 "--device", "cpu", "--memory-limit", limit, "-o", small.trace, "--json"});
    ASSERT_EQ(profiled.code, 0) << profiled.err;
    EXPECT_NE(profiled.err.find("with model state on the host until an op needs it"),
              std::string::npos)
        << profiled.err;
    const json recorded = json::parse(profiled.out);
    EXPECT_EQ(recorded.at("peak_requested_bytes"), peak);
    EXPECT_EQ(recorded.at("fingerprint"), whole.at("fingerprint"));
    // A plan of it is exact, and runs where it was recorded.
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(placement);
      write_streaming_plan(small, placement);
      small.verify_exactly();
      const Outcome executed =
          stowage({"execute", "--plan", small.plan, "--memory-limit", limit, "--json"});
      EXPECT_EQ(executed.code, 0) << executed.err;
    }
  }
}

}  // namespace
}  // namespace stowage
