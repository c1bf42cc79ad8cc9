#include "gui/model/lifetime.h"

#include <gtest/gtest.h>

#include "tests/support/micro_trace.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;
using Ranges = std::vector<TimeRange>;

// a: made 100 .. 150, packed, used again by backward 1,150 .. 1,200, freed at 1,300. p is older
// than the step, read at 100 .. 150. The link moves 1 byte a nanosecond.
TracePtr made_used_freed() {
  testing::MicroTrace t;
  const auto p = t.existing(100);
  t.run(100).begin_op("aten::mm");
  t.read(p);
  const auto a = t.alloc(300);
  const auto s = t.pack(a);
  t.run(50).end_op();
  t.let_go(a);
  t.backward();
  t.run(1000).begin_op("aten::mm_backward");
  const auto u = t.unpack(s);
  t.read(a);
  t.run(50).end_op();
  t.drop(u);
  t.run(100).begin_op("aten::other");
  t.free(a);
  t.end_op();
  return std::make_shared<const TraceData>(t.finish(), "", "");
}

ExplainedPtr explained(const TracePtr& trace, const PlanState& plan = {}) {
  const auto simulated = simulate(trace, std::make_shared<const PlanState>(plan));
  EXPECT_TRUE(simulated) << simulated.error().text();
  return std::make_shared<const Explained>(*simulated);
}

TEST(Lifetime, HasWhenItIsMadeUsedDeadAndFreed) {
  const ExplainedPtr x = explained(made_used_freed());
  const auto life = lifetime_of(*x, {Kind::saved, 0}, true, 1300);
  ASSERT_TRUE(life.has_value());
  EXPECT_EQ(life->storage, StorageId(1));
  EXPECT_EQ(life->bytes, 300);
  EXPECT_EQ(life->made, 100);
  EXPECT_EQ(life->freed, 1300);
  EXPECT_EQ(life->there, (Ranges{{100, 1300}}));
  // What makes it, the pack, the unpack up to its drop, the op that reads it.
  EXPECT_EQ(life->uses, (Ranges{{100, 150}, {100, 100}, {1150, 1200}, {1150, 1200}}));
  EXPECT_EQ(life->dead, (TimeRange{1200, 1300}));
  EXPECT_EQ(lifetime_text(*life),
            "made at 100 ns, used 4 times, idle at most 1.00 us from 150 ns, dead from 1.20 us, "
            "freed at 1.30 us");
}

TEST(Lifetime, OfAnOpIsThatOfTheLargestThatItMakesAndLeaves) {
  testing::MicroTrace t;
  t.begin_op("aten::outer");
  const auto small = t.alloc(100);
  t.run(10).begin_op("aten::inner");
  const auto large = t.alloc(300);
  t.run(10).end_op();
  const auto passing = t.alloc(900);
  t.run(10).free(passing);
  t.run(10).end_op();
  t.run(10).begin_op("aten::nothing");
  t.end_op();
  t.free(small);
  t.free(large);
  const ExplainedPtr x = explained(std::make_shared<const TraceData>(t.finish(), "", ""));
  const auto of_op = [&](std::int32_t op) { return lifetime_of(*x, {Kind::op, op}, true, 50); };
  ASSERT_TRUE(of_op(0).has_value());
  EXPECT_EQ(of_op(0)->bytes, 300);
  EXPECT_EQ(of_op(0), of_op(1)) << "what is inside of it makes it";
  EXPECT_EQ(of_op(0), lifetime_of(*x, {Kind::storage, of_op(0)->storage.value}, true, 50));
  EXPECT_FALSE(of_op(2).has_value()) << "it makes nothing";
  EXPECT_FALSE(of_op(99).has_value());
}

TEST(Lifetime, OfWhatIsOlderThanTheStepReachesOverAllOfIt) {
  const auto life = lifetime_of(*explained(made_used_freed()), {Kind::storage, 0}, true, 1300);
  ASSERT_TRUE(life.has_value());
  EXPECT_FALSE(life->made.has_value());
  EXPECT_FALSE(life->freed.has_value());
  EXPECT_FALSE(life->dead.has_value()) << "the next step uses it";
  EXPECT_EQ(life->there, (Ranges{{0, 1300}}));
  EXPECT_EQ(life->uses, (Ranges{{100, 150}}));
}

// Copied out from 100 or 150 on, for 300, and back ahead of 1,150.
TEST(Lifetime, UnderAPlanHasAGapWhereItIsAway) {
  PlanState plan;
  simulator::SavedRule& rule = plan.plan.saved.emplace_back();
  rule.site = "*";
  rule.decision = simulator::Decision::offload;
  rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  const ExplainedPtr x = explained(made_used_freed(), plan);
  ASSERT_FALSE(x->simulated->detail.transfers.empty());
  const Nanoseconds end = x->simulated->result.step_ns;
  const auto life = lifetime_of(*x, {Kind::saved, 0}, false, end);
  ASSERT_TRUE(life.has_value());
  ASSERT_EQ(life->there.size(), 2U);
  EXPECT_EQ(life->there[0].begin, 100);
  EXPECT_LE(life->there[0].end, 1150);
  EXPECT_GE(life->there[1].begin, life->there[0].end);
  // A copy and a stall are about the same bytes.
  EXPECT_EQ(lifetime_of(*x, {Kind::transfer, 0}, false, end), life);
  ASSERT_FALSE(x->simulated->result.stalls.empty());
  EXPECT_EQ(lifetime_of(*x, {Kind::stall, 0}, false, end), life);
  EXPECT_EQ(lifetime_of(*x, {Kind::op, 0}, false, end), life) << "the op makes nothing else";
  EXPECT_FALSE(lifetime_of(*x, {Kind::transfer, 99}, false, end).has_value());
  EXPECT_FALSE(lifetime_of(*x, {}, false, end).has_value());
}

}  // namespace
}  // namespace stowage::gui
