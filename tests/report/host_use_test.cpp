// How many bytes a plan has on the host: by hand, and within the arena of random plans.
#include "report/host_use.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/report/report_case.h"

namespace stowage::report_tests {
namespace {

using report::host_use;
using report::HostUse;

// The link moves 1 byte a nanosecond: 400 bytes leave from 100 to 500, and come back from 1610 to
// 2010.
TEST(HostUse, OfASavedTensorIsFromItsCopyOutToTheEndOfItsCopyBack) {
  testing::MicroTrace t;
  t.run(100).begin_op("aten::mm");
  const auto a = t.alloc(400);
  const auto s = t.pack(a);
  t.end_op();
  t.let_go(a);
  t.run(1000).begin_op("aten::other");
  t.run(500).end_op();
  t.backward();
  t.run(10).begin_op("aten::mm_backward");
  const auto u = t.unpack(s);
  t.run(50).drop(u);
  t.end_op();
  t.free(a);
  simulator::Plan plan;
  plan.saved = {offload("*")};
  plan.saved[0].reload.kind = simulator::ReloadPoint::Kind::unpack;
  const HandCase step(t.finish(), plan);
  const HostUse use = host_use(step.schedule, step.detail);
  EXPECT_EQ(use.points, (std::vector<HostUse::Point>{{0, 0}, {100, 400}, {2010, 0}}));
  EXPECT_EQ(use.most, 400);
  EXPECT_EQ(use.most_in(0, 100), 0);
  EXPECT_EQ(use.most_in(0, 101), 400);
  EXPECT_EQ(use.most_in(500, 1000), 400);
  EXPECT_EQ(use.most_in(2010, 3000), 0);
}

TEST(HostUse, OfAStepInWhichNothingMovesIsNothing) {
  const RandomCase step(2);
  const HostUse use = host_use(simulator::resident_schedule(step.index), {});
  EXPECT_EQ(use.points, (std::vector<HostUse::Point>{{0, 0}}));
  EXPECT_EQ(use.most, 0);
}

// What has a home of its own is there from the begin to the end; nothing is below that, and nothing
// above the arena.
TEST(HostUse, OfRandomPlansLiesBetweenTheHomesAndTheArena) {
  int with_homes = 0;
  int moving = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomCase step(seed);
    const HostUse use = host_use(step.schedule, step.detail);
    Bytes homes = 0;
    for (const simulator::Tenant& tenant : step.schedule.tenants) {
      if (tenant.has_own_home) homes += tenant.bytes;
    }
    ASSERT_FALSE(use.points.empty());
    ASSERT_EQ(use.points.front().time, 0);
    ASSERT_LE(use.most, step.schedule.host_bytes) << "seed " << seed;
    ASSERT_EQ(use.points.back().bytes, homes) << "seed " << seed;
    Nanoseconds before = -1;
    for (const HostUse::Point& point : use.points) {
      ASSERT_GT(point.time, before);
      ASSERT_GE(point.bytes, homes) << "seed " << seed;
      before = point.time;
    }
    with_homes += homes > 0 ? 1 : 0;
    moving += use.most > homes ? 1 : 0;
    // By hand at every point: the sum of what is there then.
    for (const HostUse::Point& point : use.points) {
      Bytes there = homes;
      for (std::size_t i = 0; i < step.schedule.tenants.size(); ++i) {
        const simulator::Tenant& tenant = step.schedule.tenants[i];
        Nanoseconds begin = -1;
        Nanoseconds end = 0;
        for (const simulator::Transfer& each : step.detail.transfers) {
          if (step.schedule.stays[each.stay.index()].tenant.index() != i) continue;
          if (each.is_store) begin = begin < 0 ? each.start : std::min(begin, each.start);
          end = std::max(end, each.end);
        }
        const bool is_there = begin >= 0 && begin <= point.time && point.time < end;
        if (!tenant.has_own_home && is_there) there += tenant.bytes;
      }
      ASSERT_EQ(point.bytes, there) << "seed " << seed << " at " << point.time;
      ASSERT_EQ(use.most_in(point.time, point.time + 1), there);
    }
  }
  EXPECT_GT(with_homes, 20);
  EXPECT_GT(moving, 100);
}

}  // namespace
}  // namespace stowage::report_tests
