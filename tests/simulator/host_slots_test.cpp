#include "simulator/schedule/host_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simulator/schedule/schedule.h"

namespace stowage::simulator {
namespace {

TEST(HostSlots, NestedSlotsLieBesideEachOther) {
  const ArenaLayout layout = lay_out({{100, 1, 10}, {600, 2, 9}, {0, 3, 8}, {512, 4, 7}});
  EXPECT_EQ(layout.offset, (std::vector<Bytes>{0, 512, 0, 1536}));
  EXPECT_EQ(layout.bytes, 2048);
}

// The slot of the first is free when the third starts; the fourth joins two free neighbours.
TEST(HostSlots, BytesAreUsedAgain) {
  const ArenaLayout layout =
      lay_out({{512, 0, 1}, {512, 0, 3}, {512, 2, 3}, {1024, 4, 5}, {512, 4, 5}});
  EXPECT_EQ(layout.offset, (std::vector<Bytes>{0, 512, 0, 0, 1024}));
  EXPECT_EQ(layout.bytes, 1536);
}

// What is free joins the free bytes ahead of it: a slot of 1024 fits where two of 512 ended.
TEST(HostSlots, FreeNeighboursJoinInEitherOrder) {
  const ArenaLayout layout = lay_out({{512, 0, 1}, {512, 0, 2}, {1024, 3, 4}});
  EXPECT_EQ(layout.offset, (std::vector<Bytes>{0, 512, 0}));
  EXPECT_EQ(layout.bytes, 1024);
}

// The last 512 bytes are free when 1024 are asked for: the arena grows by the rest.
TEST(HostSlots, GrowsByWhatIsMissing) {
  const ArenaLayout layout = lay_out({{512, 0, 9}, {512, 0, 1}, {1024, 2, 3}});
  EXPECT_EQ(layout.offset, (std::vector<Bytes>{0, 512, 512}));
  EXPECT_EQ(layout.bytes, 1536);
}

// Both ends belong to the slot.
TEST(HostSlots, TouchingIsOverlapping) {
  EXPECT_EQ(lay_out({{512, 0, 2}, {512, 2, 3}}).bytes, 1024);
}

TEST(HostSlots, RandomSlotsNeverOverlap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<SlotRequest> slots(1 + random() % 40);
    for (SlotRequest& slot : slots) {
      slot.bytes = static_cast<Bytes>(random() % 5000);
      slot.first = static_cast<std::int64_t>(random() % 50);
      slot.last = slot.first + static_cast<std::int64_t>(random() % 20);
    }
    const ArenaLayout layout = lay_out(slots);
    Bytes most = 0;
    for (std::int64_t at = 0; at < 70; ++at) {
      Bytes live = 0;
      for (const SlotRequest& slot : slots) {
        if (slot.first <= at && at <= slot.last) live += (slot.bytes + 511) / 512 * 512;
      }
      most = std::max(most, live);
    }
    ASSERT_GE(layout.bytes, most);
    for (std::size_t a = 0; a < slots.size(); ++a) {
      ASSERT_EQ(layout.offset[a] % kHostSlotAlignment, 0);
      ASSERT_LE(layout.offset[a] + slots[a].bytes, layout.bytes);
      for (std::size_t b = a + 1; b < slots.size(); ++b) {
        const bool same_time = slots[a].first <= slots[b].last && slots[b].first <= slots[a].last;
        const bool same_bytes = layout.offset[a] < layout.offset[b] + slots[b].bytes &&
                                layout.offset[b] < layout.offset[a] + slots[a].bytes;
        ASSERT_FALSE(same_time && same_bytes && slots[a].bytes > 0 && slots[b].bytes > 0);
      }
    }
  }
}

}  // namespace
}  // namespace stowage::simulator
