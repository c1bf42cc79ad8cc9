// Updates on the host as a user has them: measured by profile, simulated, planned, verified.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "simulator/replay/replay.h"
#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::MainJob;
using cli_tests::Outcome;
using cli_tests::stowage;
using nlohmann::json;

constexpr const char* kSmall = "gpt2:layers=1,width=32,seq=64,heads=2,vocab=32";
constexpr const char* kOnHost = R"("optimizer": [{"layer": "*", "state": "host", "step": "host"}])";

// profile has measured how fast the host is, so nobody assumes it; --set takes its place.
TEST(HostUpdates, AreAsFastAsTheyWereMeasured) {
  MainJob job;
  job.profile(kSmall, "2", "adamw", {});
  const Outcome measured = stowage({"simulate", job.trace, "--policy", "zero_offload", "--json"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_EQ(measured.out.find(simulator::kHostUpdateRemark), std::string::npos);
  const Outcome slow = stowage({"simulate", job.trace, "--policy", "zero_offload", "--set",
                                "host.update_gbps=0.0001", "--json"});
  ASSERT_EQ(slow.code, 0) << slow.err;
  EXPECT_GT(json::parse(slow.out).at("step_ns"), json::parse(measured.out).at("step_ns"));
  const json stalls = json::parse(slow.out).at("stalls");
  ASSERT_FALSE(stalls.empty());
  EXPECT_EQ(stalls[0].at("copy"), "host");
  job.write_plan(kOnHost);
  job.verify_exactly();
}

// Gradients accumulate over the parts, and leave behind the last one.
TEST(HostUpdates, OfAStepInMicroBatchesAreExact) {
  for (const char* parts : {"*=2", "head=2"}) {
    SCOPED_TRACE(parts);
    MainJob job;
    job.profile(kSmall, "2", "adamw", {"--micro-batches", parts});
    const std::string segment = std::string(parts).substr(0, std::string(parts).find('='));
    job.write_plan(std::string(kOnHost) + R"(, "budget": { "automatic_bytes": 0 },
      "micro_batches": [{"segment": ")" +
                   segment + R"(", "count": 2}])");
    const json result = job.verify_exactly();
    EXPECT_GT(result.at("planned").at("loaded_bytes"), 0);
  }
}

// On several threads the device's arithmetic is another than the host's, which goes part by part.
// A reference with the one is none for a plan with the other.
TEST(HostUpdates, OnSeveralThreadsAreThoseOfAReferenceThroughTheHost) {
  MainJob job;
  const Outcome profiled =
      stowage({"profile", "mlp:layers=2,width=301", "--batch", "4", "--optimizer", "adamw",
               "--threads", "3", "--device", "cpu", "-o", job.trace});
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  const std::string kept = job.folder.file("reference.json.gz");
  const auto reference_of = [&](const std::string& plan) {
    job.write_plan(plan);
    return job.verify_exactly({"--reference", kept}).at("reference");
  };
  const json through_host = reference_of(kOnHost);
  EXPECT_TRUE(through_host.at("step_ns").is_null());
  EXPECT_EQ(through_host.at("repeatable"), true);
  EXPECT_EQ(reference_of(kOnHost).at("reused"), true);
  const json on_device = reference_of(R"("saved": [])");
  EXPECT_EQ(on_device.at("reused"), false);
  EXPECT_GT(on_device.at("step_ns"), 0);
  EXPECT_EQ(reference_of(kOnHost).at("reused"), false);
}

}  // namespace
}  // namespace stowage
