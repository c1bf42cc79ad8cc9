#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/inspect_text.h"
#include "cli/verbs.h"
#include "report/inspect.h"
#include "tests/cli/golden.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"
#include "traces/validate.h"

namespace stowage::cli_tests {
namespace {

using report::GroupBy;
using ::testing::HasSubstr;
using testing::small_trace;
using testing::small_trace_peak;

TEST(SmallTrace, IsValidAndHasThePeakThatItsHeaderDerives) {
  for (const int layers : {1, 2, 3, 7}) {
    const Trace trace = small_trace(layers);
    const Status valid = validate(trace, "small");
    ASSERT_TRUE(valid.ok()) << valid.error().text();
    EXPECT_EQ(trace.peaks.requested.at(0), small_trace_peak(layers));
    const auto requested = report::requested_after(trace);
    EXPECT_EQ(*std::max_element(requested.begin(), requested.end()), small_trace_peak(layers));
  }
}

// Three layers: 3 x (400 kB parameter + 2 MB activation) + 200 kB input + 8 kB loss + the 2 MB that
// the backward op of layers.2 allocates.
TEST(Inspect, ThePeakIsNamedAndItsBytesAreShared) {
  const Trace trace = small_trace(3);
  const auto report = report::inspect(trace, report::GroupBy::layer, "peak");
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->moment.requested, 9'408'000);
  EXPECT_EQ(report->moment.active, 9'408'000);
  EXPECT_EQ(report->moment.reserved, -1);
  EXPECT_EQ(report->moment.op_name, "aten::relu_backward");
  EXPECT_EQ(report->moment.layer, "layers.2");
  EXPECT_EQ(report->moment.phase, PhaseKind::backward);
  Bytes alive = 0;
  for (const auto& row : report->alive) alive += row.bytes;
  EXPECT_EQ(alive, 9'408'000);
  // layers.2: parameter, activation, and the backward op's 2 MB.
  ASSERT_FALSE(report->groups.empty());
  EXPECT_EQ(report->groups[0].name, "layers.2");
  EXPECT_EQ(report->groups[0].bytes, 4'400'000);
  EXPECT_EQ(report->groups[0].storages, 3);
}

TEST(Inspect, WhatCouldLeaveIsPackedReleasedAndNotInUse) {
  const Trace trace = small_trace(3);
  const auto at_peak = report::inspect(trace, report::GroupBy::layer, "peak");
  ASSERT_TRUE(at_peak.ok());
  EXPECT_EQ(at_peak->movable.storages, 3);
  EXPECT_EQ(at_peak->movable.bytes, 6'000'000);
  EXPECT_EQ(at_peak->movable.alive_bytes, 6'000'000);
  // layers.2's activation was unpacked for the very op that makes the peak.
  EXPECT_EQ(at_peak->movable.away_bytes, 4'000'000);
  // In forward the layer's own op still holds its activation: op 4 is aten::mm of layers.2.
  const auto in_forward = report::inspect(trace, report::GroupBy::layer, "4");
  ASSERT_TRUE(in_forward.ok());
  EXPECT_EQ(in_forward->movable.away_bytes, 4'000'000);
  EXPECT_EQ(in_forward->moment.op_name, "aten::mm");
  EXPECT_FALSE(in_forward->moment.is_peak);
}

TEST(Inspect, PhasesAndLayersAddUp) {
  const Trace trace = small_trace(3);
  const auto report = report::inspect(trace, report::GroupBy::storage_class, "peak");
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->phases.size(), 3U);
  EXPECT_EQ(report->phases[1].kind, PhaseKind::forward);
  EXPECT_EQ(report->phases[1].ops, 7);  // two a layer and the loss
  EXPECT_EQ(report->phases[1].duration, 7'000'000);
  EXPECT_EQ(report->phases[2].duration, 12'000'000);  // two of 2 ms a layer
  EXPECT_EQ(report->phases[0].peak, 2'600'000);       // 3 parameters, 3 old gradients, input
  const auto layer = std::find_if(report->layers.begin(), report->layers.end(),
                                  [](const auto& row) { return row.name == "layers.1"; });
  ASSERT_NE(layer, report->layers.end());
  EXPECT_EQ(layer->ops, 4);
  EXPECT_EQ(layer->forward, 2'000'000);
  EXPECT_EQ(layer->backward, 4'000'000);
  EXPECT_EQ(layer->saved_bytes, 2'000'000);
}

TEST(Inspect, AnOpIsFoundByNameAtItsHighestPoint) {
  const Trace trace = small_trace(3);
  const auto report = report::inspect(trace, report::GroupBy::op, "aten::relu");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->moment.layer, "layers.2");
  // 3 parameters, input, 3 activations, outputs of layers.1 and layers.2.
  EXPECT_EQ(report->moment.requested, 1'200'000 + 200'000 + 6'000'000 + 1'000'000);
  EXPECT_EQ(report->groups[0].name, "aten::mm");
}

TEST(Inspect, AWrongMomentSaysWhatThereIs) {
  const Trace trace = small_trace(3);
  EXPECT_THAT(report::inspect(trace, report::GroupBy::op, "aten::rellu").error().hint,
              HasSubstr("aten::relu"));
  EXPECT_THAT(report::inspect(trace, report::GroupBy::op, "13").error().hint, HasSubstr("13 ops"));
  EXPECT_EQ(report::inspect(trace, report::GroupBy::op, "-1").error().code, ErrorCode::usage);
}

TEST(Inspect, TextIsAsItWas) {
  const Trace trace = small_trace(3);
  const auto report = report::inspect(trace, report::GroupBy::layer, "peak");
  ASSERT_TRUE(report.ok());
  cli::Terminal screen;
  expect_golden("inspect_ascii.txt",
                cli::inspect_text(trace, *report, 10, "layer", cli::Paint(), screen));
  screen.unicode = true;
  screen.width = 100;
  expect_golden("inspect_unicode.txt",
                cli::inspect_text(trace, *report, 2, "layer", cli::Paint(), screen));
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

}  // namespace
}  // namespace stowage::cli_tests
