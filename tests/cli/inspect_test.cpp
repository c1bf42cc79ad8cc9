#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/verbs.h"
#include "report/answers/inspect_text.h"
#include "report/inspect.h"
#include "tests/cli/golden.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using testing::small_trace;

TEST(Inspect, TextIsAsItWas) {
  const Trace trace = small_trace(3);
  const auto report = report::inspect(trace, report::GroupBy::layer, "peak");
  ASSERT_TRUE(report.ok());
  report::TextStyle style;
  expect_golden("inspect_ascii.txt", report::inspect_text(trace, *report, 10, "layer", style));
  style.unicode = true;
  style.width = 100;
  expect_golden("inspect_unicode.txt", report::inspect_text(trace, *report, 2, "layer", style));
}

TEST(Inspect, TheVerbReadsAFileAndPrintsJson) {
  const TemporaryFolder folder;
  const std::string file = folder.file("t.json.gz");
  ASSERT_TRUE(save_trace(file, small_trace(3)).ok());
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::verb_inspect({file, "--json", "--top", "2", "--by", "op"}, out, err), 0)
      << err.str();
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["schema"], "stowage-inspect/1");
  EXPECT_EQ(json["peak"]["requested_bytes"], 9'408'000);
  EXPECT_TRUE(json["peak"]["reserved_bytes"].is_null());
  EXPECT_EQ(json["peak"]["storages"].size(), 2U);
  EXPECT_EQ(json["peak"]["by_op"][0]["name"], "aten::mm");
  EXPECT_EQ(json["saved"]["could_leave_bytes"], 4'000'000);
  EXPECT_EQ(json["phases"].size(), 3U);
  EXPECT_EQ(json["layers"].size(), 5U);
  EXPECT_EQ(err.str(), "");
}

// The host is done with launching long before the GPU is with working.
TEST(InspectOfAGpu, PhasesHaveBothTimes) {
  const std::string file =
      STOWAGE_SOURCE_DIR "/traces/samples/llama3-8b-l9-bf16-h200.trace.json.gz";
  const Outcome outcome = stowage({"inspect", file, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  long launched = 0;
  long busy = 0;
  for (const auto& phase : json.at("phases")) {
    launched += phase.at("duration_ns").get<long>();
    busy += phase.at("gpu_ns").get<long>();
  }
  const auto step = json.at("run").at("step_ns").get<long>();
  EXPECT_LT(launched, step / 2);
  EXPECT_GT(busy, step * 9 / 10);
  EXPECT_LT(busy, step * 11 / 10);
  const std::string text = stowage({"inspect", file}).out;
  EXPECT_NE(text.find("launched in  GPU time"), std::string::npos) << text;
  EXPECT_NE(text.find("in which the host launched the ops"), std::string::npos);
}

}  // namespace
}  // namespace stowage::cli_tests
