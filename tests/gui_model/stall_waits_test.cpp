#include "gui/model/stall_waits.h"

#include <gtest/gtest.h>

#include "gui/model/keep_instead.h"
#include "gui/model/simulated.h"
#include "gui/model/step_picture.h"
#include "tests/support/micro_trace.h"

namespace stowage::gui {
namespace {

// The link moves 1 byte a nanosecond. A first layer saves 1000 bytes, a second one 600 and 400,
// which backward needs in one op, with no work between them.
TracePtr pairs() {
  testing::MicroTrace t;
  std::vector<std::pair<StorageId, SavedId>> saved;
  const auto save = [&](Bytes bytes) {
    const auto out = t.alloc(bytes);
    saved.emplace_back(out, t.pack(out));
  };
  t.begin_layer("one");
  t.run(3000).begin_op("aten::mm");
  save(1000);
  t.end_op();
  t.let_go(saved[0].first);
  t.end_layer("one");
  t.begin_layer("two");
  t.run(3000).begin_op("aten::mul");
  save(600);
  save(400);
  t.end_op();
  t.let_go(saved[1].first);
  t.let_go(saved[2].first);
  t.end_layer("two");
  t.run(3000).backward();
  t.run(100).begin_op("aten::mul_backward");
  const auto first = t.unpack(saved[1].second);
  const auto second = t.unpack(saved[2].second);
  t.run(200).drop(first);
  t.drop(second);
  t.end_op();
  t.run(100).begin_op("aten::mm_backward");
  const auto last = t.unpack(saved[0].second);
  t.run(200).drop(last);
  t.end_op();
  for (const auto& [storage, of] : saved) t.free(storage);
  return std::make_shared<const TraceData>(t.finish(), "", "");
}

SimulatedPtr all_offloaded(const TracePtr& trace) {
  PlanState state;
  simulator::SavedRule& rule = state.plan.saved.emplace_back();
  rule.site = "*";
  rule.decision = simulator::Decision::offload;
  rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  auto result = simulate(trace, std::make_shared<const PlanState>(state));
  EXPECT_TRUE(result) << result.error().text();
  return *result;
}

TEST(StallWaits, NeighboursThatWaitForOneLaneAreOneWhereComputeDoesNothingBetween) {
  const SimulatedPtr step = all_offloaded(pairs());
  ASSERT_EQ(step->result.stalls.size(), 3U) << "600 and 400 bytes, then 1000";
  const StallWaits waits = stall_waits(*step->index, step->result, step->detail);
  ASSERT_EQ(waits.groups.size(), 2U);
  const StallGroup& pair = waits.groups[0];
  EXPECT_EQ(pair.count, 2);
  EXPECT_EQ(pair.duration, 1000);
  EXPECT_EQ(step->result.stalls[static_cast<std::size_t>(pair.longest)].duration, 600);
  EXPECT_EQ(waits.groups[1].count, 1);
  EXPECT_EQ(&waits.group_of(waits.waits[1].stall), &pair);
  for (const StallWait& wait : waits.waits) {
    EXPECT_FALSE(wait.is_store);
    ASSERT_GE(wait.copy, 0);
    const auto& copy = step->detail.transfers[static_cast<std::size_t>(wait.copy)];
    EXPECT_EQ(copy.stay, step->result.stalls[static_cast<std::size_t>(wait.stall)].stay);
    EXPECT_FALSE(copy.is_store);
    EXPECT_EQ(wait.of.end, wait.at.end) << "it is over when the copy is";
  }
  // One span for both, and the sum is that of the stalls.
  const StepPicturePtr view = planned_view(*step);
  const LaneRow& lane = view->lane(LaneKind::stalls).rows[0];
  ASSERT_EQ(lane.infos.size(), 2U);
  EXPECT_EQ(lane.infos[0].row, pair.longest);
  EXPECT_EQ(lane.bytes_of(0), 1000);
  EXPECT_EQ(measure(*view, {0, view->end}).stall, step->result.stall_ns);
  EXPECT_EQ(measure(*view, {pair.at.begin, pair.at.begin + 700}).stall, 700);
}

TEST(StallWaits, WhatAStallIsAboutCanBeKept) {
  const SimulatedPtr step = all_offloaded(pairs());
  const Explained explained(step);
  const StallWaits& waits = explained.waits;
  const std::int32_t longest = waits.groups[0].longest;
  const KeepInstead keeps = keep_instead(explained, {Selection::Kind::stall, longest});
  EXPECT_EQ(keeps.name, "two#0");
  EXPECT_EQ(keeps.saved, std::vector<SavedId>{SavedId(1)});
  // The same of its copy; nothing of what is no copy.
  const std::int32_t copy =
      waits.waits[static_cast<std::size_t>(waits.wait_of[static_cast<std::size_t>(longest)])].copy;
  EXPECT_EQ(keep_instead(explained, {Selection::Kind::transfer, copy}).saved, keeps.saved);
  EXPECT_TRUE(keep_instead(explained, {Selection::Kind::saved, 1}).empty());
  EXPECT_TRUE(keep_instead(explained, {Selection::Kind::stall, 99}).empty());
}

}  // namespace
}  // namespace stowage::gui
