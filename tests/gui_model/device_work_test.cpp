#include "gui/model/device_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "report/op_totals.h"
#include "tests/support/micro_trace.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

TracePtr sample_trace(const char* name) {
  auto loaded =
      load_trace(std::string(STOWAGE_SOURCE_DIR "/traces/samples/") + name + ".trace.json.gz");
  EXPECT_TRUE(loaded) << loaded.error().text();
  return std::make_shared<const TraceData>(std::move(loaded->trace), "", "");
}

SimulatedPtr replayed(const TracePtr& trace, const PlanState& state) {
  auto result = simulate(trace, std::make_shared<const PlanState>(state));
  EXPECT_TRUE(result) << result.error().text();
  return *result;
}

PlanState offload_all(const Trace& trace) {
  PlanState state = fresh_state(trace);
  simulator::SavedRule& rule = state.plan.saved.emplace_back();
  rule.site = "*";
  rule.decision = simulator::Decision::offload;
  rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  return state;
}

void expect_sums(const WorkTable& table) {
  std::int64_t count = 0;
  Nanoseconds time = 0;
  for (const WorkRow& row : table.rows) {
    count += row.count;
    time += row.time;
    EXPECT_GT(row.time, 0) << row.name;
  }
  EXPECT_EQ(count, table.count);
  EXPECT_EQ(time, table.time);
}

TEST(DeviceWork, OfTheRecordedStepIsWhatWasMeasuredOnTheDevice) {
  const TracePtr trace = sample_trace("gpt2-bf16-h200");
  const SimulatedPtr step = replayed(trace, fresh_state(trace->trace));
  const StepPicturePtr view = recorded_view(*trace);
  const DeviceWork work(*step, *view, true);
  const WorkTable ops = work.within({0, view->end}, WorkGroup::op);
  expect_sums(ops);
  std::vector<report::OpTotals> expected = report::op_totals(trace->trace);
  std::erase_if(expected, [](const report::OpTotals& row) { return row.activities == 0; });
  ASSERT_EQ(ops.rows.size(), expected.size());
  std::map<std::string, Nanoseconds> by_name;
  for (const report::OpTotals& row : expected) by_name[row.name] = row.time;
  for (const WorkRow& row : ops.rows) EXPECT_EQ(row.time, by_name[row.name]) << row.name;
  const WorkTable kernels = work.within({0, view->end}, WorkGroup::kernel);
  expect_sums(kernels);
  EXPECT_EQ(kernels.time, ops.time);
  EXPECT_EQ(kernels.count, static_cast<std::int64_t>(trace->trace.gpu.size()));
}

TEST(DeviceWork, OfThePlannedStepIsWhatTheReplaySaysThatComputeIsBusyWith) {
  const TracePtr trace = sample_trace("gpt2-bf16-h200");
  const SimulatedPtr kept = replayed(trace, fresh_state(trace->trace));
  const StepPicturePtr view = planned_view(*kept);
  const WorkTable kernels =
      DeviceWork(*kept, *view, false).within({0, view->end}, WorkGroup::kernel);
  expect_sums(kernels);
  EXPECT_EQ(kernels.time, kept->result.compute_ns);
  EXPECT_EQ(kernels.count, static_cast<std::int64_t>(trace->trace.gpu.size()));

  // Copies slow compute down, and behind the start of each compute pauses shortly.
  const SimulatedPtr moved = replayed(trace, offload_all(trace->trace));
  ASSERT_GT(moved->result.stall_ns, 0);
  const StepPicturePtr moved_view = planned_view(*moved);
  const WorkTable slower =
      DeviceWork(*moved, *moved_view, false).within({0, moved_view->end}, WorkGroup::op);
  expect_sums(slower);
  EXPECT_GE(slower.time, moved->result.compute_ns);
  const auto copies = static_cast<Nanoseconds>(moved->detail.transfers.size());
  EXPECT_LE(slower.time, moved->result.compute_ns + copies * trace->trace.calibration.start_gap_ns);
}

// Whatever a step is cut into, its parts have the time of all of it, name by name.
TEST(DeviceWork, OfTheRangesThatAStepIsCutIntoIsThatOfTheStep) {
  const TracePtr trace = sample_trace("gpt2-bf16-h200");
  const SimulatedPtr moved = replayed(trace, offload_all(trace->trace));
  const StepPicturePtr view = planned_view(*moved);
  const DeviceWork work(*moved, *view, false);
  std::mt19937 random(7);
  std::uniform_int_distribution<Nanoseconds> anywhere(0, view->end);
  for (const WorkGroup by : {WorkGroup::op, WorkGroup::kernel}) {
    std::map<std::string, Nanoseconds> all;
    for (const WorkRow& row : work.within({0, view->end}, by).rows) all[row.name] = row.time;
    std::vector<Nanoseconds> cuts{0, view->end};
    for (int i = 0; i < 50; ++i) cuts.push_back(anywhere(random));
    std::sort(cuts.begin(), cuts.end());
    std::map<std::string, Nanoseconds> summed;
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      const WorkTable part = work.within({cuts[i - 1], cuts[i]}, by);
      EXPECT_LE(part.time, cuts[i] - cuts[i - 1]) << "compute does one after the other";
      for (const WorkRow& row : part.rows) summed[row.name] += row.time;
    }
    EXPECT_EQ(summed, all);
  }
}

// mm works 0 .. 100, other 100 .. 600; in backward mm_backward waits from 610 on until its 400
// bytes are back, then works 50.
TEST(DeviceWork, OfAStepOnTheCpuIsItsOpsWithoutStalls) {
  testing::MicroTrace t;
  t.begin_op("aten::mm");
  const auto a = t.alloc(400);
  const auto s = t.pack(a);
  t.run(100).end_op();
  t.let_go(a);
  t.begin_op("aten::other");
  t.run(500).end_op();
  t.backward();
  t.run(10).begin_op("aten::mm_backward");
  const auto u = t.unpack(s);
  t.run(50).drop(u);
  t.end_op();
  t.free(a);
  const auto trace = std::make_shared<const TraceData>(t.finish(), "", "");
  const SimulatedPtr moved = replayed(trace, offload_all(trace->trace));
  ASSERT_GT(moved->result.stall_ns, 0);
  const StepPicturePtr view = planned_view(*moved);
  const DeviceWork work(*moved, *view, false);
  EXPECT_FALSE(work.has_kernels());
  EXPECT_TRUE(work.within({0, view->end}, WorkGroup::kernel).rows.empty());
  const WorkTable all = work.within({0, view->end}, WorkGroup::op);
  ASSERT_EQ(all.rows.size(), 3U);
  EXPECT_EQ(all.rows[0].name, "aten::other");
  EXPECT_EQ(all.rows[0].time, 500);
  EXPECT_EQ(all.rows[1].name, "aten::mm");
  EXPECT_EQ(all.rows[1].time, 100);
  EXPECT_EQ(all.rows[2].name, "aten::mm_backward");
  EXPECT_EQ(all.rows[2].time, 50) << "without the stall";
  EXPECT_EQ(all.rows[2].count, 1);
  EXPECT_EQ(all.rows[2].longest, (Selection{Selection::Kind::op, 2}));
  const WorkTable part = work.within({40, 150}, WorkGroup::op);
  ASSERT_EQ(part.rows.size(), 2U);
  EXPECT_EQ(part.rows[0].name, "aten::mm");
  EXPECT_EQ(part.rows[0].time, 60);
  EXPECT_EQ(part.rows[1].time, 50);
}

}  // namespace
}  // namespace stowage::gui
