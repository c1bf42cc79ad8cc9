#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/verbs.h"
#include "simulator/plan/plan_json.h"
#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_trace;
using ::testing::StartsWith;
using Json = nlohmann::json;

class PlanVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, small_trace(3)).ok());
    const auto loaded = load_trace(trace_);
    ASSERT_TRUE(loaded.ok());
    sha256_ = loaded->sha256;
  }
  Outcome plan(std::vector<std::string> more) const {
    std::ostringstream out;
    std::ostringstream err;
    more.insert(more.begin(), trace_);
    const int code = cli::verb_plan(more, out, err);
    return {code, out.str(), err.str()};
  }
  Outcome simulate(const std::string& file) const {
    std::ostringstream out;
    std::ostringstream err;
    const int code = cli::verb_simulate({trace_, "--plan", file, "--json"}, out, err);
    return {code, out.str(), err.str()};
  }

  TemporaryFolder folder_;
  std::string trace_;
  std::string sha256_;
};

// The resident peak is 9,408,000 bytes; 70 % are 6,585,600. The lowest peak is in the backward op
// of layers.0: 3 parameters, 2 gradients, input, loss, its own activation and 2 MB: 6,208,000.
TEST_F(PlanVerb, WritesAPlanThatTheSimulatorConfirms) {
  const std::string file = folder_.file("p.json");
  const Outcome outcome = plan({"--budget", "70%", "-o", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* words : {"Within the budget", "peak requested", "lower bound", "gap to it",
                            "step time", "stowage verify --plan "}) {
    EXPECT_THAT(outcome.out, HasSubstr(words));
  }
  const auto written = simulator::plan_from_json(read_text(file), file);
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_EQ(written->budget.device, 6'585'600);
  EXPECT_EQ(written->budget.device_text, "70%");
  EXPECT_EQ(written->target.trace_file, "t.json.gz");
  EXPECT_EQ(written->target.trace, sha256_);
  EXPECT_EQ(written->target.model, "small:layers=3");
  ASSERT_TRUE(written->predicted.has_value());

  const Outcome replayed = simulate(file);
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_EQ(replayed.err, "");  // no warning about the prediction
  const Json json = Json::parse(replayed.out);
  EXPECT_EQ(json["peak_requested_bytes"], written->predicted->peak_requested);
  EXPECT_EQ(json["step_ns"], written->predicted->step);
  EXPECT_LE(json["peak_active_bytes"].get<Bytes>(), 6'585'600);
}

TEST_F(PlanVerb, WithoutOutputThePlanIsOnStdoutAndTheTextOnStderr) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"-o", "-"}}) {
    std::vector<std::string> args = {"--budget", "70%"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = plan(args);
    ASSERT_EQ(outcome.code, 0);
    EXPECT_TRUE(simulator::plan_from_json(outcome.out, "out").ok());
    EXPECT_THAT(outcome.err, HasSubstr("Within the budget"));
  }
  EXPECT_EQ(plan({"--budget", "70%", "--quiet"}).err, "");
}

TEST_F(PlanVerb, JsonHoldsThePlanAndWhatIsKnownAboutIt) {
  const Outcome outcome = plan({"--budget", "70%", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "stowage-plan-answer/1");
  EXPECT_EQ(json["feasible"], true);
  EXPECT_EQ(json["plan"]["schema"], "stowage-plan/1");
  for (const char* key : {"predicted", "resident", "lower_bound", "gap", "search", "floor"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_FALSE(json.contains("error"));
  EXPECT_EQ(json["resident"]["peak_active_bytes"], 9'408'000);
  EXPECT_LE(json["lower_bound"]["step_ns"].get<Nanoseconds>(),
            json["predicted"]["step_ns"].get<Nanoseconds>());
}

TEST_F(PlanVerb, BelowTheFloorItNamesWhoMakesIt) {
  const Outcome outcome = plan({"--budget", "6MB", "-o", folder_.file("p.json")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(
      outcome.err,
      StartsWith("stowage: error: infeasible: the floor is 6.21 MB (6,208,000 bytes), made at "
                 "aten::relu_backward in layer layers.0; the budget is 6.00 MB (6,000,000 "
                 "bytes) (a budget of 6208000 bytes (6.21 MB) or more"));
  EXPECT_EQ(count_lines(outcome.err), 1);
  EXPECT_THAT(outcome.out, HasSubstr("6,208,000 bytes"));
  EXPECT_THAT(outcome.out, HasSubstr("aten::mm, reloaded"));
  EXPECT_THAT(folder_.names(), ElementsAre("t.json.gz"));

  const Outcome in_json = plan({"--budget", "6MB", "--json"});
  EXPECT_EQ(in_json.code, 1);
  const Json json = Json::parse(in_json.out);
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["error"]["code"], "condition");
  EXPECT_EQ(json["floor"]["bytes"], 6'208'000);
  EXPECT_EQ(json["floor"]["op_name"], "aten::relu_backward");
}

TEST_F(PlanVerb, SaysWhenItFitsAlready) {
  const Outcome outcome = plan({"--budget", "10MB", "-o", folder_.file("p.json")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("It fits already"));
}

// The same step with a caching allocator under it: reserved and the context must fit the device.
TEST_F(PlanVerb, FitsADevice) {
  Trace trace = small_trace(3);
  trace.env.device = "cuda";
  trace.env.context_bytes = 1'000'000;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.alloc_event[s].valid() || trace.storages.free_event[s].valid()) continue;
    trace.setup.bytes.push_back(trace.storages.bytes[s]);
    trace.setup.free_of.push_back(-1);
    trace.setup.storage.push_back(StorageId(s));
    trace.setup.event.emplace_back();
  }
  ASSERT_TRUE(save_trace(trace_, trace).ok());
  const Outcome free = plan({"--policy", "resident", "--json"});
  ASSERT_EQ(free.code, 0) << free.err;
  const Bytes reserved = Json::parse(free.out)["resident"]["peak_reserved_bytes"].get<Bytes>();
  EXPECT_GT(reserved, 9'408'000);

  const Outcome fits = plan({"--fit", std::to_string(reserved + 1'000'000), "--json"});
  EXPECT_EQ(fits.code, 0) << fits.err;
  const Json json = Json::parse(fits.out);
  EXPECT_EQ(json["outcome"], "fits_already");
  EXPECT_EQ(json["fit"]["needed_bytes"], reserved + 1'000'000);
  EXPECT_EQ(json["budget"]["on"], "reserved");
  EXPECT_EQ(json["budget"]["device_bytes"], reserved);
  const Outcome text = plan({"--fit", std::to_string(reserved + 1'000'000)});
  EXPECT_THAT(text.err, HasSubstr("of them for the CUDA context"));

  const Outcome less = plan({"--fit", std::to_string(reserved + 999'999), "--json"});
  EXPECT_NE(Json::parse(less.out)["outcome"], "fits_already");
  EXPECT_EQ(plan({"--fit", "1MB"}).code, 2);  // the context alone
  // The floor is of active bytes, and says so.
  const Outcome below = plan({"--fit", "6MB"});
  EXPECT_EQ(below.code, 1);
  EXPECT_THAT(below.err, HasSubstr("infeasible: the floor is "));
  EXPECT_THAT(below.err, HasSubstr(" bytes) active, made at "));
  EXPECT_THAT(below.err,
              HasSubstr("the budget is 5.00 MB (5,000,000 bytes) reserved, which are never fewer"));
  EXPECT_THAT(below.err, HasSubstr("active (reserved bytes are never fewer)"));
  EXPECT_THAT(below.err, ::testing::ContainsRegex("--fit [0-9]+ \\([0-9.]+ MB\\) or more"));
}

// With one layer nothing can be away at the peak: its only saved tensor is in use there.
TEST_F(PlanVerb, SaysWhenOffloadCannotLowerThePeak) {
  ASSERT_TRUE(save_trace(trace_, small_trace(1)).ok());
  const Outcome outcome = plan({"--budget", "99%"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("Offload cannot lower this peak"));
  EXPECT_THAT(outcome.err, HasSubstr("stowage: error: infeasible: offload cannot lower"));
  EXPECT_THAT(outcome.err,
              ::testing::ContainsRegex("this peak of [0-9.]+ MB \\([0-9,]+ bytes\\), "));
}

TEST_F(PlanVerb, APolicyNeedsNoBudgetAndKeepsOrMissesOne) {
  const std::string file = folder_.file("p.json");
  const Outcome free = plan({"--policy", "torchtune:stash=1", "-o", file});
  ASSERT_EQ(free.code, 0) << free.err;
  const auto written = simulator::plan_from_json(read_text(file), file);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->made_by.policy, "torchtune:stash=1");
  const Outcome missed = plan({"--policy", "resident", "--budget", "70%", "-o", file});
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.err, HasSubstr("the policy's plan needs a peak active of 9.41 MB"));
}

// The budget that is broken is the one that is named.
TEST_F(PlanVerb, SaysWhichBudgetAPolicyBreaks) {
  const Outcome host = plan({"--policy", "torchtune:stash=1", "--host-budget", "1KiB"});
  EXPECT_EQ(host.code, 1);
  EXPECT_THAT(host.err, HasSubstr("Over the host budget: this policy's plan does not keep it."));
  EXPECT_THAT(host.err, HasSubstr("error: the policy's plan puts "));
  EXPECT_THAT(host.err, HasSubstr(" on the host; the host budget is 1.02 kB (1,024 bytes)"));
  EXPECT_THAT(host.err, HasSubstr("Host budget: 1.02 kB (1,024 bytes)."));
  EXPECT_THAT(host.err, Not(HasSubstr("needs")));
  const Outcome roomy =
      plan({"--policy", "torchtune:stash=1", "--host-budget", "1KiB", "--budget", "1GB"});
  EXPECT_EQ(roomy.code, 1);
  EXPECT_THAT(roomy.err, HasSubstr("error: the policy's plan puts "));
  EXPECT_THAT(roomy.err, Not(HasSubstr("needs")));
  const Outcome both =
      plan({"--policy", "torchtune:stash=1", "--host-budget", "1KiB", "--budget", "1KiB"});
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.err, HasSubstr("the policy's plan needs a peak active of "));
  EXPECT_THAT(both.err, HasSubstr("; it puts "));
}

// Nothing is said of what is not allowed.
TEST_F(PlanVerb, SpeaksOfWhatIsAllowed) {
  const Outcome floor = plan({"--budget", "1", "--allow", "offload"});
  EXPECT_EQ(floor.code, 1);
  EXPECT_THAT(floor.err, HasSubstr("no plan of what is allowed (offload) keeps this budget"));
  EXPECT_THAT(floor.err, HasSubstr("infeasible: the floor of what is allowed (offload) is "));
  EXPECT_THAT(floor.err, HasSubstr("no mix of decisions of what is allowed (offload) has a lower"));
  // Nothing of this recording can run again.
  const Outcome again = plan({"--budget", "99%", "--deny", "offload,params"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("What is allowed (recompute) cannot lower this peak"));
  EXPECT_THAT(again.err, HasSubstr("infeasible: what is allowed (recompute) cannot lower"));
  EXPECT_THAT(again.err, Not(HasSubstr("ffload cannot")));
  const Outcome nothing = plan({"--budget", "99%", "--deny", "offload,recompute,params"});
  EXPECT_THAT(nothing.err, HasSubstr("what is allowed (nothing) cannot lower"));
}

TEST_F(PlanVerb, ExplainTellsTheRulesAndTheSearch) {
  const Outcome outcome = plan({"--budget", "70%", "--explain", "-o", folder_.file("p.json")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Rules"));
  EXPECT_THAT(outcome.out, HasSubstr("offload"));
  EXPECT_THAT(outcome.out, HasSubstr("Search: "));
  EXPECT_THAT(outcome.out, HasSubstr("The floor: "));
}

// Byte by byte: when it was given stands in the answer alone.
TEST_F(PlanVerb, TheSameQuestionGetsTheSamePlan) {
  const std::string once = plan({"--budget", "70%", "--quiet"}).out;
  EXPECT_EQ(once, plan({"--budget", "70%", "--quiet"}).out);
  EXPECT_THAT(once, Not(HasSubstr("created")));
  const Json answer = Json::parse(plan({"--budget", "70%", "--json"}).out);
  EXPECT_THAT(answer.at("given_at").get<std::string>(), ::testing::MatchesRegex("20.*T.*Z"));
}

TEST_F(PlanVerb, TheDemosTable) {
  const std::string file = folder_.file("p.json");
  ASSERT_EQ(plan({"--budget", "70%", "-o", file}).code, 0);
  const auto written = simulator::plan_from_json(read_text(file), file);
  ASSERT_TRUE(written.ok());
  const Bytes peak = written->predicted->peak_requested;
  Json verify = {{"schema", "stowage-verify/1"},
                 {"passed", true},
                 {"bitwise", true},
                 {"steps", 3},
                 {"reference", {{"peak_requested_bytes", 9'408'000}, {"step_ns", 20'000'000}}},
                 {"planned",
                  {{"peak_requested_bytes", peak},
                   {"step_ns", 21'000'000},
                   {"stall_ns", 5},
                   {"host_bytes", 4'000'768}}},
                 {"predicted",
                  {{"peak_requested_bytes", peak},
                   {"step_ns", 19'000'000},
                   {"stall_ns", 0},
                   {"host_bytes", 4'000'768}}}};
  const auto report = [&] {
    std::ostringstream out;
    std::ostringstream err;
    const std::string measured = folder_.write("v.json", verify.dump());
    EXPECT_EQ(
        cli::verb_demo_report({"--trace", trace_, "--plan", file, "--verify", measured}, out, err),
        0)
        << err.str();
    return out.str();
  };
  const std::string equal = report();
  for (const char* words : {"without plan", "9.41 MB", "0 bytes", "equal, bit for bit, in 3 steps",
                            "budget", "+10.5 %", "p.json"}) {
    EXPECT_THAT(equal, HasSubstr(words));
  }
  verify["passed"] = verify["bitwise"] = false;
  verify["max_abs_diff"] = 0.25;
  verify["planned"]["peak_requested_bytes"] = peak + 1536;
  const std::string unequal = report();
  EXPECT_THAT(unequal, HasSubstr("+1,536 bytes"));
  EXPECT_THAT(unequal, HasSubstr("not equal, largest difference 0.25"));
}

}  // namespace
}  // namespace stowage::cli_tests
