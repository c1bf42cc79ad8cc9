// What is said of a plan file's budget where it contradicts itself or decides nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/verbs.h"
#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_trace;
using Json = nlohmann::json;

class PlanBudget : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, small_trace(3)).ok());
  }
  static Outcome simulate(std::vector<std::string> args) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = cli::verb_simulate(args, out, err);
    return {code, out.str(), err.str()};
  }
  [[nodiscard]] Outcome with_budget(const Json& budget) const {
    const Json plan = {{"schema", "stowage-plan/1"}, {"budget", budget}};
    return simulate({trace_, "--plan", folder_.write("p.json", plan.dump())});
  }

  TemporaryFolder folder_;
  std::string trace_;
  std::string gpu_trace_ =
      STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l2-adamw-bf16-h100.trace.json.gz";
};

// The peak of the small trace is 9,408,000 bytes.
TEST_F(PlanBudget, AnEditedPercentageIsNotOverruledByTheBytesBesideIt) {
  const Outcome stale = with_budget({{"device", "50%"}, {"device_bytes", 6'000'000}});
  EXPECT_EQ(stale.code, 3);
  EXPECT_THAT(stale.err, HasSubstr("p.json: /budget/device_bytes: 50% of the peak active of "
                                   "9408000 bytes without the plan are 4704000 bytes, not 6000000 "
                                   "(leave device_bytes out, or plan again)"));
  const Outcome right = with_budget({{"device", "100%"}, {"device_bytes", 9'408'000}});
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_EQ(with_budget({{"device", "100%"}}).code, 0);
}

// In either memory: the percentage is of the peak in the plan's own.
TEST_F(PlanBudget, APlannedPercentageHoldsInTheOtherMemoryToo) {
  const std::string file = folder_.file("p.json");
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::verb_plan({gpu_trace_, "--policy", "resident", "--budget", "100%", "-o", file},
                           out, err),
            0)
      << err.str();
  for (const char* memory : {"planned", "caching"}) {
    const Outcome outcome = simulate({gpu_trace_, "--plan", file, "--placement", memory, "--json"});
    EXPECT_EQ(outcome.err.find("device_bytes"), std::string::npos) << outcome.err;
    EXPECT_EQ(Json::parse(outcome.out).at("budget").at("device_bytes"),
              Json::parse(read_text(file)).at("budget").at("device_bytes"));
  }
}

TEST_F(PlanBudget, ReservedBytesThatAPredictionHasNotAreNotCompared) {
  const std::string file = folder_.file("p.json");
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::verb_plan({gpu_trace_, "--policy", "resident", "-o", file}, out, err), 0);
  Json plan = Json::parse(read_text(file));
  EXPECT_EQ(simulate({gpu_trace_, "--plan", file}).err, "");
  plan["predicted"]["peak_reserved_bytes"] = nullptr;
  EXPECT_EQ(simulate({gpu_trace_, "--plan", folder_.write("null.json", plan.dump())}).err, "");
  plan["predicted"]["peak_reserved_bytes"] = 1;
  EXPECT_THAT(simulate({gpu_trace_, "--plan", folder_.write("one.json", plan.dump())}).err,
              HasSubstr("/predicted: the plan says peak reserved 1 B, now "));
}

TEST_F(PlanBudget, ACounterThatTheDeviceHasNotIsRefused) {
  for (const Json& budget : {Json{{"on", "reserved"}}, Json{{"on", "reserved"}, {"device", "5MB"}},
                             Json{{"on", "reserved"}, {"device", "60%"}}}) {
    const Outcome outcome = with_budget(budget);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_THAT(outcome.err, HasSubstr("p.json: /budget/on: the trace's device (cpu) has no "
                                       "reserved bytes (use active)"));
  }
}

}  // namespace
}  // namespace stowage::cli_tests
