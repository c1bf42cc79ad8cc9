#include "executor/device/planned_region.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "executor/device/allocation_tag.h"
#include "executor/device/device.h"
#include "executor/device/file_pages.h"
#include "executor/device/step_memory.h"
#include "simulator/placement/placement.h"
#include "tests/support/or_throw.h"

namespace stowage::executor {
namespace {

constexpr Bytes kPage = 4096;

// Maps a part of what it refuses.
class RefusingPages final : public PagedMemory {
 public:
  RefusingPages(std::unique_ptr<PagedMemory> to, const bool& refuses)
      : PagedMemory(to->bytes(), to->region_bytes()), to_(std::move(to)), refuses_(refuses) {
    set_begin(to_->begin());
  }
  [[nodiscard]] Status map(const std::vector<simulator::Mapping>& mappings) override {
    if (!refuses_) return to_->map(mappings);
    simulator::Mapping part = mappings.front();
    part.bytes = kPage;
    testing::or_throw(to_->map({part}));
    return Error{ErrorCode::condition, "full", "", "", ""};
  }
  [[nodiscard]] bool keep_only(const std::vector<simulator::Mapping>& mappings) override {
    return to_->keep_only(mappings);
  }

 private:
  std::unique_ptr<PagedMemory> to_;
  const bool& refuses_;
};

// Two allocations of a page each, the second while the first is there; its owner is never asked.
struct TwoPages {
  // `refuses`: to map more than one page at a time.
  explicit TwoPages(const bool* refuses = nullptr) {
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
    if (refuses != nullptr) pages = std::make_unique<RefusingPages>(std::move(pages), *refuses);
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
  region.used_elsewhere(first, 1);
  region.free(first);
  EXPECT_TRUE(region.server().is_live(0)) << "the other stream may be at work there";
  region.server().end_period();
  region.begin_period(0);
  EXPECT_TRUE(region.server().is_live(0)) << "nobody has waited for the device";
  region.server().end_period();
  EXPECT_TRUE(region.is_delaying());  // and the device is waited for
  region.begin_period(0);
  EXPECT_FALSE(region.server().is_live(0));
  EXPECT_EQ(pages.allocate(), first);
  EXPECT_FALSE(region.is_delaying());
}

TEST(PlannedRegion, WhatIsFreedBehindTheWaitIsHandedOutAPeriodLater) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const first = pages.allocate();
  std::byte* const second = pages.allocate();
  region.used_elsewhere(first, 1);
  region.used_elsewhere(second, 1);
  region.free(first);
  region.server().end_period();
  ASSERT_TRUE(region.is_delaying());
  region.free(second);
  region.begin_period(0);
  EXPECT_EQ(pages.allocate(), first);
  EXPECT_EQ(pages.allocate(), nullptr);
}

// As PyTorch has it, a tensor may be used on the stream that it was made on without a word.
TEST(PlannedRegion, WhatAPeriodOnAnotherStreamWasGivenIsHandedOutBehindAWait) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const kept = pages.allocate();
  region.used_elsewhere(kept, 0);
  region.server().end_period();
  EXPECT_FALSE(region.is_delaying());
  region.begin_period(1);
  region.used_elsewhere(kept, 0);
  region.free(kept);
  EXPECT_TRUE(region.server().is_live(0)) << "stream 0 may be at work there";
  EXPECT_EQ(region.allocate(kPage, {kStepAllocation, 0}), nullptr) << "not the period's stream";
  EXPECT_EQ(region.allocate(kPage, {kStepAllocation, 1}), nullptr);
  region.server().end_period();
  ASSERT_TRUE(region.is_delaying());
  region.begin_period(1);
  std::byte* const again = region.allocate(kPage, {kStepAllocation, 1});
  EXPECT_EQ(again, kept);
  region.free(again);
  EXPECT_FALSE(region.server().is_live(0)) << "it is this stream's now";
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
  EXPECT_TRUE(region.lend());
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

TEST(PlannedRegion, WhatIsFreedWhileTheRestIsLentStaysUntilTheNextTime) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const kept = pages.allocate();
  region.server().end_period();
  EXPECT_TRUE(region.lend());
  region.free(kept);
  EXPECT_EQ(region.bytes(), kPage) << "its page is there until the next time";
  testing::or_throw(region.map_rest());
  EXPECT_TRUE(region.lend());
  EXPECT_EQ(region.bytes(), 0);
  testing::or_throw(region.map_rest());
  region.begin_period(0);
  std::byte* const first = pages.allocate();
  ASSERT_EQ(first, kept);
  *first = std::byte{1};
  EXPECT_EQ(*first, std::byte{1});
}

TEST(PlannedRegion, TakesBackAgainWhatWasRefusedHalfWay) {
  bool refuses = false;
  const TwoPages pages(&refuses);
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const kept = pages.allocate();
  ASSERT_NE(kept, nullptr);
  *kept = std::byte{7};
  region.server().end_period();
  ASSERT_TRUE(region.lend());
  refuses = true;
  for (int i = 0; i < 2; ++i) {
    const Status refused = region.map_rest();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message, "full");
    EXPECT_TRUE(region.is_lent());
    EXPECT_EQ(region.bytes(), kPage);
    EXPECT_EQ(*kept, std::byte{7});
  }
  refuses = false;
  testing::or_throw(region.map_rest());
  EXPECT_EQ(*kept, std::byte{7});
  region.begin_period(0);
  region.free(kept);
  EXPECT_EQ(pages.allocate(), kept);
  std::byte* const other = pages.allocate();
  ASSERT_NE(other, nullptr);
  *other = std::byte{1};
  EXPECT_EQ(*other, std::byte{1});
}

TEST(PlannedRegion, LendsNothingWhereSomethingLiesInEveryPage) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  ASSERT_TRUE(pages.allocate() != nullptr && pages.allocate() != nullptr);
  region.server().end_period();
  EXPECT_TRUE(region.can_lend());
  EXPECT_FALSE(region.lend());
  EXPECT_EQ(region.times_lent(), 0);
  EXPECT_FALSE(region.is_lent());
}

// It is freed in the next period only, so it is somebody's until then.
TEST(PlannedRegion, DoesNotLendWhatAnotherStreamUses) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const elsewhere = pages.allocate();
  ASSERT_NE(elsewhere, nullptr);
  *elsewhere = std::byte{9};
  region.used_elsewhere(elsewhere, 1);
  region.free(elsewhere);
  region.server().end_period();
  ASSERT_TRUE(region.lend());
  EXPECT_EQ(*elsewhere, std::byte{9});
  EXPECT_EQ(region.bytes(), kPage);
}

TEST(PlannedRegion, MayBeClosedWhileItsPagesAreLent) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const kept = pages.allocate();
  ASSERT_NE(kept, nullptr);
  *kept = std::byte{3};
  region.server().end_period();
  ASSERT_TRUE(region.lend());
  region.close();
  region.give_back_rest();
  EXPECT_FALSE(region.can_lend());
  EXPECT_EQ(region.bytes(), kPage);
  EXPECT_EQ(*kept, std::byte{3});
  EXPECT_FALSE(region.is_over());
  region.free(kept);
  EXPECT_TRUE(region.is_over());
}

TEST(PlannedRegion, ServesNobodyInAFork) {
  const TwoPages pages;
  PlannedRegion& region = *pages.region;
  region.begin_period(0);
  std::byte* const first = pages.allocate();
  ASSERT_NE(first, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (pages.allocate() != nullptr) _exit(1);
    if (!region.has(first)) _exit(2);
    region.free(first);  // what was inherited goes by the books alone
    region.server().end_period();
    _exit(region.can_lend() ? 3 : 0);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(region.server().is_live(0));
  EXPECT_NE(pages.allocate(), nullptr);
}

TEST(PlannedRegion, IsOverOnceWhatWasKeptIsGone) {
  for (const bool elsewhere : {false, true}) {
    SCOPED_TRACE(elsewhere);
    const TwoPages pages;
    PlannedRegion& region = *pages.region;
    region.begin_period(0);
    std::byte* const kept = pages.allocate();
    ASSERT_NE(kept, nullptr);
    if (elsewhere) region.used_elsewhere(kept, 1);
    region.server().end_period();
    region.close();
    region.give_back_rest();
    EXPECT_EQ(region.bytes(), kPage);
    EXPECT_FALSE(region.is_over());
    if (elsewhere) region.used_elsewhere(kept, 1);
    region.free(kept);
    EXPECT_TRUE(region.is_over());
  }
}

}  // namespace
}  // namespace stowage::executor
