// stowage simulate --ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/verbs.h"
#include "tests/cli/process.h"
#include "tests/support/micro_trace.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Ranked = nlohmann::json;

class SimulateRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, testing::small_trace(3)).ok());
  }
  Outcome simulate(std::vector<std::string> more) const {
    std::ostringstream out;
    std::ostringstream err;
    more.insert(more.begin(), trace_);
    const int code = cli::verb_simulate(more, out, err);
    return {code, out.str(), err.str()};
  }
  Ranked answer(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const Outcome outcome = simulate(std::move(more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Ranked::parse(outcome.out);
  }

  TemporaryFolder folder_;
  std::string trace_;
};

// Three gradients of 400 kB are one bucket. Four ranks on two hosts: within them 2 messages of
// 600 kB at 1 GB/s; between them 2 of 300 kB, which the two ranks of a host send at once at 2 GB/s.
TEST_F(SimulateRanks, AreInTheAnswerAsAssumed) {
  const Ranked json = answer({"--ranks", "1,4", "--set", "network.ranks_per_host=2", "--set",
                              "network.gbps=2", "--set", "network.host_gbps=1", "--set",
                              "network.latency_us=0", "--set", "network.host_latency_us=0"});
  const Ranked& ranks = json["data_parallel"];
  EXPECT_EQ(ranks["assumed"], true);
  EXPECT_EQ(ranks["network"]["gbps"], 2);
  EXPECT_EQ(ranks["network"]["bucket_mib"], 25);
  ASSERT_EQ(ranks["buckets"].size(), 1U);
  EXPECT_EQ(ranks["buckets"][0]["bytes"], 1'200'000);
  EXPECT_EQ(ranks["buckets"][0]["gradients"], 3);
  EXPECT_EQ(ranks["bucket_bytes"], 1'200'000);
  EXPECT_EQ(ranks["peak_requested_bytes"], 9'408'000 + 1'200'000);
  EXPECT_TRUE(ranks["peak_reserved_bytes"].is_null());
  ASSERT_EQ(ranks["steps"].size(), 2U);
  EXPECT_EQ(ranks["steps"][0]["ranks"], 1);
  EXPECT_EQ(ranks["steps"][0]["step_ns"], json["step_ns"]);
  EXPECT_EQ(ranks["steps"][0]["efficiency"], 1.0);
  EXPECT_EQ(ranks["steps"][1]["hosts"], 2);
  EXPECT_EQ(ranks["steps"][1]["all_reduce_ns"], 2 * 600'000 + 2 * 300'000);
  EXPECT_LE(ranks["steps"][1]["exposed_ns"], ranks["steps"][1]["all_reduce_ns"]);
  EXPECT_EQ(ranks["steps"][1]["step_ns"].get<std::int64_t>(),
            19'000'000 + ranks["steps"][1]["exposed_ns"].get<std::int64_t>());
}

TEST_F(SimulateRanks, AreATableForPeople) {
  const Outcome outcome = simulate({"--ranks", "8,4096"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Data parallel, assumed"));
  EXPECT_THAT(outcome.out, HasSubstr("  4,096    512"));
  EXPECT_THAT(outcome.out, HasSubstr("3 gradients of 1.20 MB in 1 bucket."));
  EXPECT_THAT(outcome.out, HasSubstr("network.gbps=400"));
  EXPECT_THAT(simulate({}).out, Not(HasSubstr("Data parallel")));
  EXPECT_FALSE(answer({}).contains("data_parallel"));
}

// As DDP(bucket_cap_mb=..) is: PyTorch's small first bucket is there by default alone.
TEST_F(SimulateRanks, ALimitOfBucketsIsThatOfTheFirstOne) {
  const auto first = [&](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"--ranks", "8"});
    return answer(std::move(settings))["data_parallel"]["network"]["first_bucket_mib"];
  };
  EXPECT_EQ(first({}), 1);
  EXPECT_EQ(first({"--set", "network.bucket_mib=100"}), 100);
  EXPECT_EQ(first({"--set", "network.bucket_mib=100", "--set", "network.first_bucket_mib=2"}), 2);
  EXPECT_EQ(first({"--set", "network.first_bucket_mib=2"}), 2);
}

TEST_F(SimulateRanks, OneAloneHasNoBucketsThatBreakABudget) {
  const std::string plan = folder_.write(
      "p.json", R"({"schema":"stowage-plan/1","budget":{"device":9408000,"on":"requested"}})");
  const Outcome alone = simulate({"--ranks", "1", "--plan", plan});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.err, Not(HasSubstr("buckets")));
  EXPECT_THAT(simulate({"--ranks", "1,8", "--plan", plan}).err, HasSubstr("buckets"));
}

TEST_F(SimulateRanks, GoWithAPolicyAndAPlan) {
  const Ranked json = answer({"--ranks", "8", "--policy", "save_on_cpu"});
  EXPECT_GT(json["stall_ns"], 0);
  EXPECT_GE(json["data_parallel"]["steps"][0]["step_ns"], json["step_ns"]);
  const std::string plan = folder_.write(
      "p.json", R"({"schema":"stowage-plan/1","budget":{"device":9408000,"on":"requested"}})");
  const Outcome outcome = simulate({"--ranks", "8", "--plan", plan});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("with DDP's buckets the peak requested is 10.6 MB"));
  EXPECT_THAT(outcome.err, HasSubstr("plan with 1.20 MB (1,200,000 bytes) less"));
}

TEST_F(SimulateRanks, WrongOnesAreRefused) {
  const auto error = [&](std::vector<std::string> args) {
    const Outcome outcome = simulate(std::move(args));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error({"--ranks", "0"}), HasSubstr("'0' is not a number of ranks"));
  EXPECT_THAT(error({"--ranks", "-8"}), HasSubstr("'-8' is not a number of ranks"));
  EXPECT_THAT(error({"--ranks", "many"}), HasSubstr("'many' is not a number of ranks"));
  EXPECT_THAT(error({"--ranks", "8,"}), HasSubstr("'' is not a number of ranks"));
  EXPECT_THAT(error({"--ranks", "8,16.5"}), HasSubstr("'16.5' is not a number of ranks"));
  EXPECT_THAT(error({"--ranks", "1000001"}), HasSubstr("'1000001' is not a number of ranks"));
  EXPECT_THAT(error({"--ranks", "12"}), HasSubstr("12 is no whole number of hosts of 8 ranks"));
  EXPECT_THAT(error({"--set", "network.gbps=5"}), HasSubstr("network.gbps=5 without --ranks"));
  EXPECT_THAT(error({"--ranks", "8", "--set", "network.gbp=5"}),
              HasSubstr("did you mean network.gbps?"));
  EXPECT_THAT(error({"--ranks", "8", "--set", "network.gbps=-5"}), HasSubstr("out of range"));
}

TEST_F(SimulateRanks, AStepWithoutGradientsIsRefused) {
  testing::MicroTrace inference;
  inference.alloc(1000);
  ASSERT_TRUE(save_trace(trace_, inference.finish()).ok());
  const Outcome outcome = simulate({"--ranks", "8"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("t.json.gz: ranks cannot be simulated: the step has no "
                                     "gradients to reduce (record a training step)"));
}

}  // namespace
}  // namespace stowage::cli_tests
