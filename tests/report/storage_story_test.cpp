// What becomes of each storage: by hand, and against the schedule on random plans.
#include "report/storage_story.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/transfers.h"
#include "simulator/schedule/departures.h"
#include "tests/report/report_case.h"
#include "tests/support/schedule_parts.h"

namespace stowage::report_tests {
namespace {

using report::StorageStory;

// Made at 0 in layer a, packed, let go, back at 1000 for 100 ns, needed at 1010, dropped at once.
TEST(StorageStory, TellsWhenItLeavesComesBackAndWhatWaits) {
  testing::MicroTrace t;
  t.begin_layer("a");
  t.begin_op("aten::relu");
  const auto a = t.alloc(100);
  const auto s = t.pack(a);
  t.end_op();
  t.let_go(a);
  t.end_layer("a");
  t.run(1000).backward();
  t.begin_layer_backward("a");
  t.run(10);
  const auto u = t.unpack(s);
  t.drop(u);
  t.free(a);
  t.end_layer_backward("a");
  simulator::Plan plan;
  plan.saved.push_back(offload("a#*"));
  plan.saved[0].reload = reload_at_backward("a");
  const HandCase c(t.finish(), plan);
  const report::StorageStories stories(c.trace, c.schedule, c.result, c.detail);
  ASSERT_EQ(stories.size(), 1U);
  const StorageStory story = stories[0];
  EXPECT_EQ(story.saved, s);
  EXPECT_EQ(c.trace.string(c.trace.ops.name[story.made_by.index()]), "aten::relu");
  EXPECT_EQ(story.made, c.trace.storages.alloc_event[0]);
  EXPECT_EQ(story.first_use, c.trace.saved.event[0]);
  EXPECT_EQ(story.last_use, c.trace.unpacks.event[0]);
  EXPECT_EQ(story.natural_free, c.trace.storages.natural_free_event[0]);
  EXPECT_EQ(story.recorded_free, c.trace.storages.free_event[0]);
  EXPECT_TRUE(story.moves);
  EXPECT_EQ(story.copy_out, c.trace.saved.event[0]);
  EXPECT_EQ(story.copy_out_start, 0);
  EXPECT_EQ(story.copy_out_end, 100);
  ASSERT_TRUE(story.release.valid());
  ASSERT_TRUE(story.device_free.valid());
  ASSERT_EQ(story.returns.size(), 1U);
  const report::Return& back = story.returns[0];
  EXPECT_EQ(c.trace.events.kind[back.start.index()], EventKind::layer_backward_begin);
  EXPECT_EQ(back.needed, c.trace.unpacks.event[0]);
  EXPECT_EQ(back.gone, c.trace.unpacks.event[0]);
  EXPECT_EQ(back.copy_start, 1000);
  EXPECT_EQ(back.copy_end, 1100);
  EXPECT_EQ(story.stall, 90);
}

TEST(StorageStory, OfTheRecordedStepMovesNothing) {
  testing::MicroTrace t;
  const auto p = t.existing(40);
  t.begin_layer("a");
  t.begin_op("aten::mm");
  t.read(p);
  t.run(5).end_op();
  t.end_layer("a");
  const auto unused = t.existing(8);
  const Trace trace = t.finish();
  const report::StorageStories stories(trace);
  ASSERT_EQ(stories.size(), 2U);
  EXPECT_FALSE(stories[p.index()].moves);
  EXPECT_FALSE(stories[p.index()].made.valid());
  EXPECT_EQ(trace.events.kind[stories[p.index()].first_use.index()], EventKind::op_begin);
  EXPECT_EQ(trace.events.kind[stories[p.index()].last_use.index()], EventKind::op_end);
  EXPECT_FALSE(stories[unused.index()].first_use.valid());
  EXPECT_FALSE(stories[unused.index()].last_use.valid());
}

TEST(StorageStory, AgreesWithTheScheduleOnRandomPlans) {
  int streamed = 0;
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    const report::StorageStories stories(c.trace, c.schedule, c.result, c.detail);
    ASSERT_EQ(stories.size(), c.trace.storages.size());
    Nanoseconds stall = 0;
    std::size_t reloads = 0;
    std::size_t loads = 0;
    for (std::size_t s = 0; s < stories.size(); ++s) {
      const StorageStory story = stories[s];
      stall += story.stall;
      if (story.first_use.valid()) {
        ASSERT_LE(story.first_use, story.last_use);
      }
      for (const report::Return& back : story.returns) {
        const std::vector<UnpackId>& unpacks = c.schedule.stays[back.stay.index()].unpacks;
        if (!unpacks.empty()) {
          ++reloads;
          ASSERT_TRUE(back.start.valid());
          ASSERT_LE(back.start, back.needed);
          EventId gone = c.trace.unpacks.event[unpacks.back().index()];
          for (const UnpackId u : unpacks) {
            const EventId released = c.trace.unpacks.released_event[u.index()];
            if (!released.valid()) gone = EventId(c.trace.events.size());
            gone = std::max(gone, released);
          }
          ASSERT_EQ(back.gone, gone.index() < c.trace.events.size() ? gone : EventId());
        } else if (back.start.valid()) {
          ++loads;
        }
        if (back.copy_start >= 0) {
          ASSERT_LE(back.copy_start, back.copy_end);
          ASSERT_LE(c.detail.time[back.start.index()], back.copy_start);
        }
      }
    }
    ASSERT_EQ(stall, c.result.stall_ns);
    // A storage has a story of its own exactly when the plan moves it, whatever it is shared with.
    const report::StorageStories still(c.trace);
    const report::StorageStories shared(c.trace, c.schedule, c.result, c.detail, &still);
    ASSERT_EQ(shared.moving().size(), stories.moving().size());
    ASSERT_TRUE(still.moving().empty());
    for (std::size_t s = 0; s < stories.size(); ++s) {
      const StorageStory story = stories[s];
      const StorageStory other = shared[s];
      ASSERT_EQ(story.storage, StorageId(s));
      ASSERT_EQ(stories.first_use(story.storage), story.first_use);
      ASSERT_EQ(stories.last_use(story.storage), story.last_use);
      ASSERT_EQ(other.first_use, story.first_use);
      ASSERT_EQ(other.last_use, story.last_use);
      ASSERT_EQ(other.saved, story.saved);
      ASSERT_EQ(other.moves, story.moves);
      ASSERT_EQ(other.device_free, story.device_free);
      ASSERT_EQ(other.returns.size(), story.returns.size());
      ASSERT_EQ(other.stall, story.stall);
      const StorageStory recorded = still[s];
      ASSERT_FALSE(recorded.moves);
      ASSERT_EQ(recorded.made_by, story.made_by);
      ASSERT_EQ(recorded.last_use, story.last_use);
      ASSERT_EQ(recorded.device_free, c.trace.storages.free_event[s]);
      const bool told =
          std::any_of(stories.moving().begin(), stories.moving().end(),
                      [&](const StorageStory& at) { return at.storage == story.storage; });
      ASSERT_EQ(told, story.moves);
    }
    ASSERT_EQ(reloads, testing::reloads_of(c.schedule).size());
    std::size_t parameter_stays = 0;
    for (const auto& stay : c.schedule.stays) {
      parameter_stays += c.schedule.tenants[stay.tenant.index()].has_own_home;
    }
    ASSERT_EQ(loads, parameter_stays);
    for (const auto& departure : simulator::departures(c.trace, c.schedule)) {
      const StorageId storage =
          departure.storage.valid() ? departure.storage : c.schedule.tenant(departure.stay).storage;
      ASSERT_TRUE(stories[storage.index()].moves);
      if (!departure.storage.valid()) continue;
      ++moved;
    }
    for (const auto& parameter : testing::parameters_of(c.schedule)) {
      const StorageStory story = stories[parameter.storage.index()];
      ASSERT_TRUE(story.moves);
      ASSERT_FALSE(story.returns.empty());
      ++streamed;
    }
  }
  EXPECT_GT(streamed, 50);
  EXPECT_GT(moved, 200);
}

}  // namespace
}  // namespace stowage::report_tests
