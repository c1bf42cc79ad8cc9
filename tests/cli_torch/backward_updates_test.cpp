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

// Verifies the job's plan: bitwise, as predicted to the byte, nothing beside the plan.
json expect_exactly_verified(const MainJob& job, const std::vector<std::string>& options = {}) {
  std::vector<std::string> words = {"verify", "--plan", job.plan, "--steps", "4", "--json"};
  words.insert(words.end(), options.begin(), options.end());
  const Outcome verified = stowage(words);
  EXPECT_EQ(verified.code, 0) << verified.err << verified.out;
  json result = json::parse(verified.out);
  EXPECT_TRUE(result.at("bitwise").get<bool>());
  const json& planned = result.at("planned");
  EXPECT_EQ(planned.at("peak_requested_bytes"), result.at("predicted").at("peak_requested_bytes"));
  EXPECT_EQ(planned.at("unplanned_stored_bytes"), 0);
  if (const json& memory = planned.at("planned_memory"); memory.is_object()) {
    EXPECT_EQ(memory.at("unforeseen"), 0) << memory;
    EXPECT_EQ(memory.at("conflicts"), 0) << memory;
  }
  return result;
}

// Everything but one layer's state streams, loaded on demand, so that peaks do not hang on recorded
// times; that one's is made in its first update.
void write_streaming_plan(const MainJob& job, const char* placement) {
  std::ofstream(job.plan) << R"({ "schema": "stowage-plan/1", "for": { "trace_file": ")"
                          << job.trace
                          << R"(" }, "budget": { "automatic_bytes": 0 }, "placement": ")"
                          << placement
                          << R"(", "parameters": { "shards": [["layers.*"]], "stream": true },
                                   "optimizer": [{"layer": "layers.2", "state": "device"},
                                                 {"layer": "*", "state": "stream"}] })";
}

TEST(BackwardUpdates, StreamAllModelState) {
  for (const char* optimizer : {"adamw:update=backward", "adam:master=fp32,update=backward"}) {
    MainJob job;
    const json recorded = job.profile(kWideMlp, "8", optimizer);
    for (const char* placement : {"caching", "planned"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + placement);
      write_streaming_plan(job, placement);
      const json result = expect_exactly_verified(job);
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
  expect_exactly_verified(job, {"--optimizer", "sgd:update=backward"});
}

TEST(BackwardUpdates, AreNamedInOneForm) {
  MainJob job;
  job.profile(kWideMlp, "8", "adamw:update=backward,master=fp32");
  job.make_plan({"--budget", "80%"});
  const json plan = json::parse(std::ifstream(job.plan));
  EXPECT_EQ(plan.at("for").at("optimizer"), "adamw:master=fp32,update=backward");
  expect_exactly_verified(job, {"--optimizer", "adamw:update=backward,master=fp32"});
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
      expect_exactly_verified(small);
      const Outcome executed =
          stowage({"execute", "--plan", small.plan, "--memory-limit", limit, "--json"});
      EXPECT_EQ(executed.code, 0) << executed.err;
    }
  }
}

}  // namespace
}  // namespace stowage
