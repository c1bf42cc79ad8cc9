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

}  // namespace
}  // namespace stowage
