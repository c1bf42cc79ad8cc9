#include "executor/device/planned_region.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "executor/device/allocation_tag.h"
#include "executor/device/device.h"
#include "executor/device/file_pages.h"
#include "executor/device/step_memory.h"
#include "simulator/placement/placement.h"
#include "tests/support/or_throw.h"

namespace stowage::executor {
namespace {

constexpr Bytes kPage = 4096;

// Two allocations of a page each, the second while the first is there; its owner is never asked.
struct TwoPages {
  TwoPages() {
    simulator::MemoryLayout layout;
    layout.live = simulator::LiveRanges{3, {{kPage, 0, 2}, {kPage, 1, 3}}, {}};
    layout.placement = simulator::place(layout.live, kPage);
    layout.hand_outs = {{EventId(std::size_t{0}), 0, kPage}, {EventId(std::size_t{1}), 1, kPage}};
    for (std::size_t r = 0; r < layout.live.ranges.size(); ++r) {
      layout.address.push_back(layout.region_bytes + layout.placement.offset[r]);
      layout.region_bytes += static_cast<Bytes>(layout.placement.pages_of[r].size()) * kPage;
    }
    auto pages =
        testing::or_throw(FilePages::create(layout.placement.bytes(), layout.region_bytes));
    region = std::make_unique<PlannedRegion>(std::move(layout), std::move(pages));
    region->set_owner(reinterpret_cast<const StepMemory*>(this));
    testing::or_throw(region->map_rest());
  }
  [[nodiscard]] std::byte* allocate() const {
    return region->allocate(kPage, {kStepAllocation, 0});
  }
  std::unique_ptr<PlannedRegion> region;
};

TEST(PlannedRegion, WhatAnotherStreamUsesIsHandedOutInTheNextPeriod) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const first = pages.allocate();
  ASSERT_NE(first, nullptr);
  region.used_elsewhere(first);
  region.free(first);
  EXPECT_TRUE(region.server().is_live(0)) << "the other stream may be at work there";
  region.server().end_period();
  region.begin_period(0);
  EXPECT_FALSE(region.server().is_live(0));
  EXPECT_EQ(pages.allocate(), first);
}

TEST(PlannedRegion, LendsWhatNothingLiesInBetweenPeriods) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const kept = pages.allocate();
  std::byte* const freed = pages.allocate();
  ASSERT_TRUE(kept != nullptr && freed != nullptr);
  *kept = std::byte{7};
  region.free(freed);
  EXPECT_FALSE(region.can_lend()) << "a period goes on";
  region.server().end_period();
  ASSERT_TRUE(region.can_lend());
  region.lend();
  EXPECT_EQ(region.bytes(), kPage);
  EXPECT_EQ(region.lent_bytes(), kPage);
  EXPECT_FALSE(region.can_lend());
  EXPECT_EQ(*kept, std::byte{7});
  EXPECT_EQ(region.allocate(kPage, {kStepAllocation, 0}), nullptr) << "between periods";
  testing::or_throw(region.map_rest());
  EXPECT_EQ(region.bytes(), 2 * kPage);
  EXPECT_EQ(region.lent_bytes(), 0);
  EXPECT_EQ(region.times_lent(), 1);
  EXPECT_EQ(*kept, std::byte{7});
  region.free(kept);
  region.begin_period(0);
  EXPECT_EQ(pages.allocate(), kept);
  std::byte* const again = pages.allocate();
  ASSERT_EQ(again, freed);
  *again = std::byte{1};  // it is there
  EXPECT_EQ(*again, std::byte{1});
}

TEST(PlannedRegion, LendsNothingThatIsFreedMeanwhileTwice) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const kept = pages.allocate();
  region.server().end_period();
  region.lend();
  region.free(kept);
  EXPECT_EQ(region.bytes(), kPage) << "its page is there until the next time";
  testing::or_throw(region.map_rest());
  region.lend();
  EXPECT_EQ(region.bytes(), 0);
  testing::or_throw(region.map_rest());
  region.begin_period(0);
  std::byte* const first = pages.allocate();
  ASSERT_EQ(first, kept);
  *first = std::byte{1};
  EXPECT_EQ(*first, std::byte{1});
}

TEST(PlannedRegion, IsOverOnceWhatWasKeptIsGone) {
  for (const bool elsewhere : {false, true}) {
    SCOPED_TRACE(elsewhere);
    const TwoPages pages;
    PlannedRegion& region = *pages.region;
    region.begin_period(0);
    std::byte* const kept = pages.allocate();
    ASSERT_NE(kept, nullptr);
    if (elsewhere) region.used_elsewhere(kept);
    region.server().end_period();
    region.close();
    region.give_back_rest();
    EXPECT_EQ(region.bytes(), kPage);
    EXPECT_FALSE(region.is_over());
    if (elsewhere) region.used_elsewhere(kept);
    region.free(kept);
    EXPECT_TRUE(region.is_over());
  }
}

}  // namespace
}  // namespace stowage::executor
