// Updates on the host in what is shown of a planned step: a lane of its own, and why one is waited
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "report/export_chrome_json.h"
#include "report/export_csv.h"
#include "report/export_svg.h"
#include "report/simulation.h"
#include "report/stalls.h"
#include "report/step_view.h"
#include "report/timeline.h"
#include "simulator/step/plan_structure.h"
#include "tests/report/report_case.h"

namespace stowage::report_tests {
namespace {

using report::Lane;
using report::Lateness;
using report::RemedyKind;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Bytes kMib = Bytes{1} << 20;

// Layers L and M of 1 MiB, L with a piece of state as large. Backward of M ends at 5 ms, of L at
// 6 ms; M's gradient is out 1.048576 ms later, L's behind it, at 7.097152 ms. The host takes 1 ms a
// MiB: 2 ms for M, until 8.048576 ms, behind it 3 ms for L, whose weights come back then.
Trace two_layers() {
  testing::MicroTrace t;
  const StorageId l = t.existing(kMib);
  const StorageId m = t.existing(kMib);
  t.state_of(l, kMib);
  for (const StorageId each : {l, m}) t.free(t.gradient_before(each));
  for (const auto& [name, parameter] : {std::pair{"L", l}, std::pair{"M", m}}) {
    t.begin_layer(name);
    t.begin_op();
    t.read(parameter);
    t.run(2'000'000).end_op();
    t.end_layer(name);
  }
  t.backward();
  for (const auto& [name, parameter] : {std::pair{"M", m}, std::pair{"L", l}}) {
    t.begin_layer_backward(name);
    t.begin_op();
    t.read(parameter);
    t.make_gradient(parameter);
    t.run(1'000'000).end_op();
    t.accumulate(parameter);
    t.end_layer_backward(name);
  }
  t.optimizer();
  t.update(l, 100);
  t.update(m, 100);
  return t.finish();
}

struct OnHost {
  OnHost() : step(unrolled()), index(step) {
    const auto lowered = simulator::lower(index, plan());
    EXPECT_TRUE(lowered.ok());
    schedule = lowered->schedule;
    result = simulator::replay(index, schedule, &detail);
    timeline = report::simulated_timeline(index.trace(), schedule, result, detail);
    stalls = report::explain_stalls(index, schedule, result, detail);
  }
  static simulator::Plan plan() {
    simulator::Plan plan;
    plan.optimizer = {{"*", simulator::StatePlace::host}};
    return plan;
  }
  simulator::Step unrolled() const {
    auto made = simulator::unroll(trace, plan());
    if (!made) throw std::runtime_error(made.error().text());
    return std::move(made).value();
  }

  const Trace trace = two_layers();
  const simulator::Step step;
  const simulator::StepIndex index;
  simulator::Schedule schedule;
  simulator::ReplayDetail detail;
  simulator::ReplayResult result;
  report::Timeline timeline;
  std::vector<report::StallRow> stalls;
};

TEST(HostUpdateLane, HasTheUpdatesInOrder) {
  const OnHost c;
  const std::vector<report::Span>& lane = c.timeline.lane(Lane::updates);
  ASSERT_EQ(lane.size(), 2U);
  EXPECT_EQ(report::label_of(c.index.trace(), lane[0]), "update of parameter of M");
  EXPECT_EQ(lane[0].begin, 5'000'000 + kMib);
  EXPECT_EQ(lane[0].end, 7'000'000 + kMib);
  EXPECT_EQ(lane[0].bytes, 2 * kMib);
  EXPECT_EQ(report::label_of(c.index.trace(), lane[1]), "update of parameter of L");
  EXPECT_EQ(lane[1].end, 10'000'000 + kMib);
  EXPECT_EQ(lane[1].bytes, 3 * kMib);
}

TEST(HostUpdateLane, AWaitForItIsOneForTheHost) {
  const OnHost c;
  std::vector<report::StallRow> waits;
  for (const report::StallRow& row : c.stalls) {
    if (row.is_update) waits.push_back(row);
  }
  ASSERT_EQ(waits.size(), 1U);
  const report::StallRow& wait = waits[0];
  EXPECT_EQ(wait.site, "parameter of L");
  EXPECT_EQ(wait.bytes, 3 * kMib);
  EXPECT_EQ(wait.ready, 5'000'000 + 2 * kMib);
  EXPECT_EQ(wait.copy_start, 7'000'000 + kMib);
  EXPECT_EQ(wait.copy_end, 10'000'000 + kMib);
  EXPECT_EQ(wait.copies_ahead, 1);
  EXPECT_EQ(wait.why, Lateness::host_slow);  // a millisecond of queue, three of its own
  EXPECT_THAT(wait.why_text, HasSubstr("take the host 3.00 ms"));
  ASSERT_EQ(wait.remedies.size(), 1U);
  EXPECT_EQ(wait.remedies[0].kind, RemedyKind::update_on_device);
  EXPECT_EQ(wait.remedies[0].bytes, kMib);
  EXPECT_THAT(wait.remedies[0].text, HasSubstr("have the device update the parameter of L"));
  const std::vector<report::Span>& lane = c.timeline.lane(Lane::stalls);
  EXPECT_TRUE(std::any_of(lane.begin(), lane.end(), [&](const report::Span& span) {
    return report::label_of(c.index.trace(), span) ==
           "waits for the host's update of parameter of L";
  }));
}

// Weights and gradients leave for the update whatever else is said of them.
TEST(HostUpdateLane, WhatLeavesForItIsNotToBeKept) {
  const OnHost c;
  int copies = 0;
  for (const report::StallRow& row : c.stalls) {
    if (row.is_update) continue;
    ++copies;
    for (const report::Remedy& each : row.remedies) EXPECT_NE(each.kind, RemedyKind::keep);
    ASSERT_FALSE(row.remedies.empty());
    EXPECT_EQ(row.remedies.back().kind, RemedyKind::update_on_device);
  }
  EXPECT_GT(copies, 0);
}

TEST(HostUpdateLane, IsInEveryExport) {
  const Trace trace = two_layers();
  const simulator::StepIndex recorded(trace);
  const auto simulation = report::simulate(recorded, OnHost::plan(), "");
  ASSERT_TRUE(simulation.ok()) << simulation.error().text();
  EXPECT_THAT(simulation->notes, ::testing::Contains(simulator::kHostUpdateRemark));
  const Trace& made = simulation->index->trace();
  const report::StepView step = report::planned_step(made, *simulation, OnHost::plan(), "planned");
  const std::string chrome = report::export_chrome({&step});
  EXPECT_THAT(chrome, HasSubstr("\"Host updates\""));
  EXPECT_THAT(chrome, HasSubstr("\"update of parameter of M\""));
  EXPECT_THAT(chrome, HasSubstr("\"why\":\"host_slow\""));
  const std::string svg = report::export_svg(step);
  EXPECT_THAT(svg, HasSubstr(">Host updates</text>"));
  EXPECT_THAT(svg, HasSubstr("update of parameter of L, 3.00 ms, 3.15 MB"));
  EXPECT_THAT(report::export_csv(step, report::CsvTable::timeline),
              HasSubstr("updates,update,6048576,8048576,update of parameter of M"));
  EXPECT_THAT(report::export_csv(step, report::CsvTable::stalls),
              HasSubstr(",update,parameter of L,3145728,"));
  const report::StepView plain = report::recorded_step(trace);
  EXPECT_THAT(report::export_svg(plain), Not(HasSubstr("host updates")));
  EXPECT_THAT(report::export_chrome({&plain}), Not(HasSubstr("host updates")));
}

}  // namespace
}  // namespace stowage::report_tests
