#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/plan_file.h"
#include "cli/verbs.h"
#include "simulator/machine/calibration_settings.h"
#include "simulator/machine/link_model.h"
#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using testing::small_trace;
using Json = nlohmann::json;

class Simulate : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, small_trace(3)).ok());
  }
  Outcome simulate(std::vector<std::string> more) const {
    std::ostringstream out;
    std::ostringstream err;
    more.insert(more.begin(), trace_);
    const int code = cli::verb_simulate(more, out, err);
    return {code, out.str(), err.str()};
  }
  std::string plan(const std::string& text) const { return folder_.write("p.json", text); }

  TemporaryFolder folder_;
  std::string trace_;
};

TEST_F(Simulate, NothingMovesWithoutAPlan) {
  const Outcome outcome = simulate({"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "stowage-simulate/1");
  EXPECT_EQ(json["feasible"], true);
  EXPECT_EQ(json["policy"], "resident");
  EXPECT_EQ(json["peak_requested_bytes"], 9'408'000);
  EXPECT_EQ(json["peak_active_bytes"], 9'408'000);
  EXPECT_TRUE(json["peak_reserved_bytes"].is_null());
  EXPECT_TRUE(json["planned_memory"].is_null()) << "nothing is known of what the process held";
  EXPECT_EQ(json["step_ns"], 19'000'000);
  EXPECT_EQ(json["stall_ns"], 0);
  EXPECT_EQ(json["transfer_bytes"]["d2h"], 0);
  EXPECT_EQ(json["stalls"].size(), 0U);
  EXPECT_EQ(json["peak_at"]["op_name"], "aten::relu_backward");
  EXPECT_EQ(json["peak_at"]["layer"], "layers.2");
}

// Each of the three 2 MB activations is copied out and back, blocking, at 8 GB/s: 6 x 0.25 ms.
TEST_F(Simulate, APolicyMovesAndStalls) {
  const Outcome outcome = simulate({"--policy", "save_on_cpu", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["transfer_bytes"]["d2h"], 6'000'000);
  EXPECT_EQ(json["transfer_bytes"]["h2d"], 6'000'000);
  EXPECT_EQ(json["stall_ns"], 1'500'000);
  EXPECT_EQ(json["step_ns"], 20'500'000);
  ASSERT_EQ(json["stalls"].size(), 6U);
  EXPECT_EQ(json["stalls"][0]["duration_ns"], 250'000);
  EXPECT_EQ(json["resident"]["step_ns"], 19'000'000);
}

TEST_F(Simulate, ASlowerLinkStallsLonger) {
  const Outcome outcome = simulate({"--policy", "save_on_cpu", "--json", "--set", "link.h2d_gbps=4",
                                    "--set", "link.d2h_gbps=2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // Back 3 x 0.5 ms, out 3 x 1 ms.
  EXPECT_EQ(Json::parse(outcome.out)["stall_ns"], 4'500'000);
}

TEST_F(Simulate, TheTimelineHoldsLanesAndMemory) {
  const std::string file = folder_.file("lanes.json");
  const Outcome outcome = simulate({"--policy", "torchtune", "--timeline", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(read_text(file));
  EXPECT_EQ(json["schema"], "stowage-timeline/1");
  EXPECT_EQ(json["lanes"]["compute"]["n"], 13);
  EXPECT_EQ(json["lanes"]["compute"]["name"][0], "aten::mm");
  EXPECT_EQ(json["lanes"]["d2h"]["n"], 3);
  EXPECT_EQ(json["lanes"]["d2h"]["bytes"][0], 2'000'000);
  EXPECT_EQ(json["lanes"]["d2h"]["duration_ns"][0], 250'000);
  EXPECT_EQ(json["memory"]["n"], json["memory"]["requested_bytes"].size());
  EXPECT_THAT(folder_.names(), ::testing::ElementsAre("lanes.json", "t.json.gz"));
  EXPECT_THAT(outcome.out, HasSubstr("peak requested"));
}

TEST_F(Simulate, ABudgetInThePlanIsTheCondition) {
  const std::string rule = R"("saved": [{"site": "layers.*#0", "do": "offload"}]})";
  const std::string large =
      R"({"schema": "stowage-plan/1", "budget": {"device": "8MB", "on": "requested"}, )" + rule;
  EXPECT_EQ(simulate({"--plan", plan(large)}).code, 0);
  const std::string small =
      R"({"schema": "stowage-plan/1", "budget": {"device": "5MB", "on": "requested"}, )" + rule;
  const Outcome outcome = simulate({"--plan", plan(small), "--json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Json::parse(outcome.out)["feasible"], false);
}

TEST_F(Simulate, AnOldPredictionIsWarnedAboutUnlessTheLinkIsAnother) {
  const std::string file = plan(R"({"schema": "stowage-plan/1", "saved": [],
    "predicted": {"peak_requested_bytes": 1, "peak_active_bytes": 1, "peak_reserved_bytes": null,
                  "step_ns": 1, "stall_ns": 0, "host_bytes": 0}})");
  const Outcome outcome = simulate({"--plan", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("stowage: warning: " + file + ": /predicted: the plan says"));
  EXPECT_EQ(simulate({"--plan", file, "--quiet"}).err, "");
  EXPECT_EQ(simulate({"--plan", file, "--set", "link.duplex=0.5"}).err, "");
}

TEST_F(Simulate, APlanForSomethingElseIsRefused) {
  const auto target = [](const std::string& model, int batch) {
    return R"({"schema": "stowage-plan/1", "for": {"model": ")" + model + R"(", "batch": )" +
           std::to_string(batch) +
           R"(, "seq": 16, "dtype": "fp32", "optimizer": "none", "fingerprint": "sha256:)" +
           std::string(64, '0') + R"("}, "saved": []})";
  };
  const Outcome model = simulate({"--plan", plan(target("gpt2", 4))});
  EXPECT_EQ(model.code, 3);
  EXPECT_THAT(model.err, HasSubstr("/for/model: the plan is for model 'gpt2', the trace is of "
                                   "model 'small:layers=3'"));
  const Outcome batch = simulate({"--plan", plan(target("small:layers=3", 8))});
  EXPECT_EQ(batch.code, 3);
  EXPECT_THAT(batch.err, HasSubstr("/for/batch: the plan is for batch 8"));
  const Outcome other = simulate({"--plan", plan(target("small:layers=3", 4))});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("/for/fingerprint"));
}

TEST_F(Simulate, AnUnknownSiteNamesTheNearest) {
  const Outcome outcome = simulate(
      {"--plan",
       plan(
           R"({"schema": "stowage-plan/1", "saved": [{"site": "layers.9#0", "do": "offload"}]})")});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/saved/0/site"));
  EXPECT_THAT(outcome.err, HasSubstr("layers.0#0"));
}

TEST_F(Simulate, UsageErrors) {
  const auto error = [&](std::vector<std::string> args) {
    const Outcome outcome = simulate(std::move(args));
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(count_lines(outcome.err), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error({"--policy", "torchtun"}), HasSubstr("did you mean 'torchtune'?"));
  EXPECT_THAT(error({"--policy", "torchtune:stach=5"}), HasSubstr("stash"));
  EXPECT_THAT(error({"--policy", "auto"}), HasSubstr("stowage plan"));
  EXPECT_THAT(error({"--plan", "p", "--policy", "resident"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error({"--set", "link.h2d_gps=1"}), HasSubstr("did you mean link.h2d_gbps?"));
  EXPECT_THAT(error({"--set", "link.h2d_gbps"}), HasSubstr("no value"));
  EXPECT_THAT(error({"--set", "link.h2d_gbps=fast"}), HasSubstr("not a number"));
  EXPECT_THAT(error({"--set", "link.h2d_gbps=-1"}), HasSubstr("out of range"));
  EXPECT_THAT(error({"--set", "link.duplex=1.5"}), HasSubstr("at most 1"));
  EXPECT_THAT(error({"--timeline", "-", "--json"}), HasSubstr("stdout"));
}

TEST(CalibrationSettings, LatencyMovesTheTimesOfTheCurve) {
  Calibration calibration;
  calibration.h2d = {{1'000'000}, {8'000'000'000}, {8'000'000'000}, 10'000};
  calibration.d2h = calibration.h2d;
  const Nanoseconds before = simulator::transfer_ns(calibration.h2d, 1'000'000);
  ASSERT_TRUE(simulator::apply_setting(calibration, "link.latency_us=60").ok());
  EXPECT_EQ(calibration.h2d.latency, 60'000);
  EXPECT_NEAR(static_cast<double>(simulator::transfer_ns(calibration.h2d, 1'000'000)),
              static_cast<double>(before + 50'000), 2.0);
}

// What a plan does to the optimizer is said by simulate and by plan in the same words, though the
// step under it has these updates no more.
TEST(SimulateUpdates, OnTheHostAreSaid) {
  const TemporaryFolder folder;
  const std::string trace =
      STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l2-adamw-bf16-h100.trace.json.gz";
  const std::string host = folder.write(
      "p.json",
      R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "layers.*", "state": "host", "step": "host"}]})");
  for (const auto& [verb, options] :
       {std::pair{&cli::verb_simulate, std::vector<std::string>{trace, "--plan", host}},
        std::pair{&cli::verb_plan,
                  std::vector<std::string>{trace, "--policy", "zero_offload", "--explain", "-o",
                                           folder.file("q.json")}}}) {
    std::ostringstream out;
    std::ostringstream err;
    ASSERT_EQ(verb(options, out, err), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr(" are updated on the host, as their gradients arrive."));
  }
}

TEST(CalibrationSettings, FactorsAndALinkThatWasNeverMeasured) {
  Calibration calibration;
  ASSERT_TRUE(simulator::apply_setting(calibration, "link.duplex=0.75").ok());
  ASSERT_TRUE(simulator::apply_setting(calibration, "link.copy_interference=0.9").ok());
  ASSERT_TRUE(simulator::apply_setting(calibration, "link.compute_interference=1").ok());
  ASSERT_TRUE(simulator::apply_setting(calibration, "link.d2h_gbps=10").ok());
  EXPECT_EQ(calibration.duplex, 750'000);
  EXPECT_EQ(calibration.copy_interference, 900'000);
  EXPECT_EQ(calibration.compute_interference, kPpm);
  EXPECT_EQ(simulator::best_rate(calibration.d2h), 10'000'000'000);
}

TEST(PlanFile, TheTraceIsNamedRelativeToThePlan) {
  EXPECT_EQ(report::trace_file_for("/a/b/t.json", "/a/b/p.json"), "t.json");
  EXPECT_EQ(report::trace_file_for("/a/t.json", "/a/b/p.json"), "../t.json");
  EXPECT_EQ(report::trace_file_for("/a/b/t.json", "/a/p.json"), "b/t.json");
  EXPECT_EQ(report::trace_file_for("t.json", ""), "t.json");
  EXPECT_EQ(report::trace_file_for("-", "/a/p.json"), "");
}

}  // namespace
}  // namespace stowage::cli_tests
