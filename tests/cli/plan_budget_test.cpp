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

TEST_F(PlanBudget, BytesOfNoPercentageAreRefused) {
  const Outcome outcome = with_budget({{"device_bytes", 100}});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("p.json: /budget/device_bytes: there is no percentage"));
}

TEST_F(PlanBudget, ABudgetThatIsNotKeptSaysWhatToDo) {
  EXPECT_THAT(with_budget({{"device", "5MB"}}).err,
              HasSubstr("the budget 5.00 MB (5,000,000 bytes) (make the plan again with"));
  const Json plan = {{"schema", "stowage-plan/1"},
                     {"budget", {{"host", 1}}},
                     {"saved", {{{"site", "*"}, {"do", "offload"}}}}};
  EXPECT_THAT(simulate({trace_, "--plan", folder_.write("h.json", plan.dump())}).err,
              HasSubstr("the budget is 1 B (make the plan again with stowage plan, or give it a "
                        "larger host budget)"));
}

TEST_F(PlanBudget, OneThatTheOtherMemoryDoesNotKeepIsThatMemorysFault) {
  const std::string file = folder_.file("p.json");
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::verb_plan({gpu_trace_, "--budget", "75%", "-o", file}, out, err), 0) << err.str();
  EXPECT_EQ(simulate({gpu_trace_, "--plan", file}).code, 0);
  const Outcome caching = simulate({gpu_trace_, "--plan", file, "--placement", "caching"});
  EXPECT_EQ(caching.code, 1);
  EXPECT_THAT(caching.err, HasSubstr("the plan does not keep its budget: the peak reserved is "));
  EXPECT_THAT(caching.err, HasSubstr("leave out --placement, or make one with stowage plan "
                                     "--placement caching"));
}

// "automatic_bytes": 0 is written for what leaves at once and comes on demand, and only then.
TEST_F(PlanBudget, IsNotWrittenWhereItDecidesNothing) {
  const auto budget_of = [&](const std::string& trace, const std::string& policy) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = cli::verb_plan({trace, "--policy", policy}, out, err);
    EXPECT_EQ(code, 0) << err.str();
    const Json plan = Json::parse(out.str());
    return plan.contains("budget") ? plan.at("budget") : Json();
  };
  const std::string cpu = STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l6-fp32-cpu.trace.json.gz";
  EXPECT_EQ(budget_of(cpu, "fairscale"), Json());
  EXPECT_EQ(budget_of(cpu, "resident"), Json());
  EXPECT_EQ(budget_of(gpu_trace_, "resident"), Json()) << "a counter that bounds nothing";
  // What the optimizer wrote leaves at once.
  EXPECT_EQ(budget_of(gpu_trace_, "fairscale"), (Json{{"automatic_bytes", 0}}));
}

TEST_F(PlanBudget, ANumberWithoutAUnitMayHaveMeantAPercentage) {
  const auto error_of = [&](const std::string& budget) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(cli::verb_plan({trace_, "--budget", budget, "--quiet"}, out, err), 1);
    return err.str();
  };
  EXPECT_THAT(error_of("60"),
              HasSubstr("the budget is 60 B (a bare number is bytes: did you mean 60% or 60GiB?)"));
  EXPECT_THAT(error_of("60B"), Not(HasSubstr("did you mean")));
  EXPECT_THAT(error_of("101"), HasSubstr("did you mean 101MiB?"));
}

TEST_F(PlanBudget, ADeviceOfTheContextsSizeIsTakenToTheByte) {
  const Bytes context = load_trace(gpu_trace_)->trace.env.context_bytes;
  const auto error_of = [&](Bytes device) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(cli::verb_plan({gpu_trace_, "--fit", std::to_string(device)}, out, err), 2);
    return err.str();
  };
  const std::string bytes = std::to_string(context) + " bytes";
  EXPECT_THAT(error_of(context), HasSubstr(bytes + " hold the CUDA context and nothing else"));
  EXPECT_THAT(error_of(context - 1),
              HasSubstr(std::to_string(context - 1) +
                        " bytes does not even hold the CUDA context of " + bytes));
  EXPECT_THAT(error_of(1'000), HasSubstr("1.00 kB does not even hold the CUDA context of "));
}

// Once, where the memory was asked for.
TEST_F(PlanBudget, PlannedMemoryOfACpuTraceHasNoReservedBytesAndSaysSo) {
  const std::string words = "stowage: the trace's device (cpu) has no reserved bytes";
  EXPECT_THAT(simulate({trace_, "--placement", "planned"}).err, HasSubstr(words));
  EXPECT_EQ(simulate({trace_, "--placement", "planned", "--quiet"}).err, "");
  EXPECT_EQ(simulate({trace_, "--placement", "caching"}).err, "");
  EXPECT_EQ(simulate({gpu_trace_, "--placement", "planned"}).err, "");
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::verb_plan(
                {trace_, "--placement", "planned", "--budget", "70%", "-o", folder_.file("p.json")},
                out, err),
            0);
  EXPECT_THAT(err.str(), HasSubstr(words));
}

}  // namespace
}  // namespace stowage::cli_tests
