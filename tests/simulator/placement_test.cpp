// Placements: derived by hand, valid for random ranges.
#include "simulator/placement/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement_check.h"

namespace stowage::simulator {
namespace {

constexpr Bytes kPage = 4096;

std::vector<std::pair<std::int32_t, std::int32_t>> spans_of(const LiveRange& range,
                                                            std::int32_t instants) {
  if (range.end <= instants) return {{range.begin, range.end}};
  return {{0, range.end - instants}, {range.begin, instants}};
}

bool are_there_at_once(const LiveRange& a, const LiveRange& b, std::int32_t instants) {
  for (const auto& x : spans_of(a, instants)) {
    for (const auto& y : spans_of(b, instants)) {
      if (x.first < y.second && y.first < x.second) return true;
    }
  }
  return false;
}

// Pages that go the same ways are one: a range has all of a chunk, in order, or nothing of it.
void expect_whole_chunks(const LiveRanges& live, const DevicePlacement& placement) {
  if (placement.pages == 0) return;
  std::vector<std::int32_t> firsts = placement.chunks;
  ASSERT_FALSE(firsts.empty());
  ASSERT_EQ(firsts.front(), 0);
  ASSERT_TRUE(std::is_sorted(firsts.begin(), firsts.end(), std::less_equal<>()));
  firsts.push_back(placement.pages);
  ASSERT_LT(firsts[firsts.size() - 2], placement.pages);
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    const auto pages = placement.pages_of[r];
    for (std::size_t k = 0; k < pages.size();) {
      const auto chunk = std::lower_bound(firsts.begin(), firsts.end(), pages[k]);
      ASSERT_EQ(*chunk, pages[k]) << "range " << r << " begins within a chunk";
      for (std::int32_t page = *chunk; page < *(chunk + 1); ++page, ++k) {
        ASSERT_LT(k, pages.size());
        ASSERT_EQ(pages[k], page);
      }
    }
  }
}

// Every byte of a range has a place, and no two ranges that are there at once have one in common.
// By brute force: no two that are there at once have a byte in common.
void expect_no_shared_bytes(const LiveRanges& live, const DevicePlacement& placement) {
  struct Part {
    std::size_t range;
    Bytes begin;
    Bytes end;
  };
  std::vector<std::vector<Part>> of_page(static_cast<std::size_t>(placement.pages));
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    const Bytes offset = placement.offset[r];
    EXPECT_EQ(offset % kPlacementAlignment, 0);
    const Bytes end = offset + placed_bytes(live.ranges[r].bytes);
    const auto pages = placement.pages_of[r];
    ASSERT_EQ(static_cast<Bytes>(pages.size()),
              (end + placement.page_bytes - 1) / placement.page_bytes);
    for (std::size_t k = 0; k < pages.size(); ++k) {
      const Bytes at = static_cast<Bytes>(k) * placement.page_bytes;
      ASSERT_GE(pages[k], 0);
      ASSERT_LT(pages[k], placement.pages);
      of_page[static_cast<std::size_t>(pages[k])].push_back(
          {r, std::max(offset, at) - at, std::min(end, at + placement.page_bytes) - at});
    }
  }
  for (const std::vector<Part>& parts : of_page) {
    for (std::size_t a = 0; a < parts.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool share = parts[a].begin < parts[b].end && parts[b].begin < parts[a].end;
        ASSERT_FALSE(share && are_there_at_once(live.ranges[parts[a].range],
                                                live.ranges[parts[b].range], live.instants))
            << "ranges " << parts[a].range << " and " << parts[b].range;
      }
    }
  }
}

void expect_valid(const LiveRanges& live, const DevicePlacement& placement) {
  expect_whole_chunks(live, placement);
  const PlannedBytes size = placed_size(live, placement.page_bytes);
  EXPECT_EQ(size.bytes, placement.bytes());
  EXPECT_EQ(size.lower_bound, placement.lower_bound);
  expect_no_shared_bytes(live, placement);
}

LiveRanges random_ranges(std::mt19937_64& random, std::size_t most, Bytes largest,
                         std::int32_t most_instants) {
  LiveRanges live;
  live.instants =
      1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(most_instants));
  const auto instant = [&] {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(live.instants));
  };
  const std::size_t count = random() % (most + 1);
  for (std::size_t i = 0; i < count; ++i) {
    LiveRange& range = live.ranges.emplace_back();
    const Bytes up_to = random() % 2 == 0 ? largest : largest / 10 + 1;
    range.bytes = 1 + static_cast<Bytes>(random() % static_cast<std::uint64_t>(up_to));
    range.begin = instant();
    range.end = range.begin + 1 + instant();
    if (random() % 4 != 0) range.end = std::min(range.end, live.instants);
  }
  return live;
}

TEST(Placement, FullPagesAreSharedOverTimeInAnyOrder) {
  // Two of one page, then one of two pages in their place, the pages of which need not lie side by
  // side: what is between them stays.
  LiveRanges live{6, {{kPage, 0, 2}, {kPage, 0, 6}, {kPage, 1, 3}, {2 * kPage, 3, 5}}, {}};
  const DevicePlacement placement = place(live, kPage);
  expect_valid(live, placement);
  EXPECT_EQ(placement.pages, 3);
  EXPECT_EQ(placement.lower_bound, 3 * kPage);
}

TEST(Placement, WhatDoesNotFillAPageSharesOne) {
  // A page and a quarter, a page and half, and a quarter of a page that fits between both.
  LiveRanges live{4, {{kPage + kPage / 4, 0, 4}, {kPage + kPage / 2, 0, 4}, {kPage / 4, 1, 3}}, {}};
  const DevicePlacement placement = place(live, kPage);
  expect_valid(live, placement);
  EXPECT_EQ(placement.pages, 3);
  EXPECT_EQ(placement.lower_bound, 3 * kPage);
}

TEST(Placement, WhatGoesOnInTheNextPeriodKeepsItsPage) {
  // There at the end and at the begin: the pages of both others are free in between alone.
  LiveRanges live{8, {{kPage, 6, 10}, {kPage, 2, 6}, {kPage, 2, 8}, {kPage, 0, 2}}, {}};
  const DevicePlacement placement = place(live, kPage);
  expect_valid(live, placement);
  EXPECT_EQ(placement.pages, 2);
}

TEST(Placement, SizesAreRoundedUpToTheAlignment) {
  LiveRanges live{1, {}, {}};
  for (int i = 0; i < 8; ++i) live.ranges.push_back({1, 0, 1});
  EXPECT_EQ(place(live, kPage).lower_bound, 8 * kPlacementAlignment);
  EXPECT_EQ(place(live, kPage).pages, 1);
  live.ranges.push_back({1, 0, 1});
  EXPECT_EQ(place(live, kPage).pages, 2);
  EXPECT_EQ(place(LiveRanges(), kPage).pages, 0);
}

TEST(Placement, ValidForRandomRanges) {
  std::cout << "seeds 1 to 1000\n";
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const LiveRanges live = random_ranges(random, 80, 10 * kPage, 60);
    const DevicePlacement placement = place(live, kPage);
    expect_valid(live, placement);
    EXPECT_TRUE(check_placement(live, placement).empty());
    EXPECT_GE(placement.bytes(), placement.lower_bound);
    const std::vector<Bytes> bytes = live_bytes(live);
    for (std::int32_t t = 0; t < live.instants; ++t) {
      Bytes there = 0;
      for (const LiveRange& range : live.ranges) {
        const bool is_there = are_there_at_once(range, {1, t, t + 1}, live.instants);
        there += is_there ? placed_bytes(range.bytes) : 0;
      }
      ASSERT_EQ(bytes[static_cast<std::size_t>(t)], there) << "instant " << t;
    }
  }
}

// The fewest pages for all: every page of every range tried in each place.
class FewestPages {
 public:
  FewestPages(const LiveRanges& live, Bytes page) : live_(live), page_(page) {}

  std::int32_t find(std::int32_t at_least) {
    for (pages_ = at_least;; ++pages_) {
      parts_.assign(static_cast<std::size_t>(pages_), {});
      if (place_range(0)) return pages_;
    }
  }

 private:
  struct Part {
    std::size_t range;
    Bytes begin;
    Bytes end;
  };

  bool place_range(std::size_t range) {
    if (range == live_.ranges.size()) return true;
    const Bytes bytes = placed_bytes(live_.ranges[range].bytes);
    const Bytes rest = bytes % page_;
    for (Bytes offset = 0; offset < page_; offset += kPlacementAlignment) {
      const bool is_at_an_edge = offset == 0 || (offset + bytes) % page_ == 0;
      if (bytes > page_ && !is_at_an_edge) continue;
      if (bytes <= page_ && offset + bytes > page_) break;
      if (rest == 0 && offset > 0) break;
      if (place_part(range, offset, offset + bytes)) return true;
    }
    return false;
  }

  // [begin, end) counted from its first page on; `begin` is in the next one.
  bool place_part(std::size_t range, Bytes begin, Bytes end) {
    if (begin >= end) return place_range(range + 1);
    const Bytes page_end = (begin / page_ + 1) * page_;
    const Part part{range, begin % page_, (std::min(end, page_end) - 1) % page_ + 1};
    for (std::vector<Part>& page : parts_) {
      const bool is_free = std::none_of(page.begin(), page.end(), [&](const Part& other) {
        return part.begin < other.end && other.begin < part.end &&
               (other.range == range ||
                are_there_at_once(live_.ranges[range], live_.ranges[other.range], live_.instants));
      });
      if (!is_free) continue;
      const bool is_first_empty = page.empty();
      page.push_back(part);
      if (place_part(range, page_end, end)) return true;
      page.pop_back();
      if (is_first_empty) break;  // the empty pages behind it are the same
    }
    return false;
  }

  const LiveRanges& live_;
  Bytes page_;
  std::int32_t pages_ = 0;
  std::vector<std::vector<Part>> parts_;
};

// What is made anew while it is still there has two places, which nobody else has, and what is
// outside has none.
TEST(Placement, PlacesThatAreTakenInTurnAreNobodyElses) {
  constexpr int kCases = 500;
  int seconds = 0;
  int above = 0;  // what is taken all the time is more than is ever there
  std::cout << "seeds 1 to " << kCases << "\n";
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LiveRanges live = random_ranges(random, 20, 3 * kPage, 12);
    std::vector<LiveRange> all;
    for (const LiveRange& range : live.ranges) {
      all.push_back(range);
      if (range.end > live.instants || random() % 3 != 0) continue;
      all.back() = {range.bytes, 0, live.instants};
      all.push_back({range.bytes, range.begin, range.end, true});
      ++seconds;
    }
    live.ranges = std::move(all);
    if (random() % 2 == 0) live.outside = {3 * kPlacementAlignment, kPage};
    const DevicePlacement placement = place(live, kPage);
    expect_whole_chunks(live, placement);
    expect_no_shared_bytes(taken_ranges(live), placement);
    EXPECT_TRUE(check_placement(live, placement).empty());
    const PlannedBytes size = placed_size(live, kPage);
    EXPECT_EQ(size.bytes, placement.bytes() + live.outside.reserved);
    if (live.ranges.empty()) continue;
    const std::vector<Bytes> there = live_bytes(live);
    const std::vector<Bytes> taken = live_bytes(taken_ranges(live));
    EXPECT_EQ(size.lower_bound, *std::max_element(there.begin(), there.end()));
    EXPECT_LE(*std::max_element(taken.begin(), taken.end()), size.bytes);
    above += *std::max_element(taken.begin(), taken.end()) > size.lower_bound ? 1 : 0;
  }
  EXPECT_GT(seconds, kCases);
  EXPECT_GT(above, kCases / 10);
}

// Whatever a file says that a step allocates.
TEST(Placement, OfMoreThanAnyDeviceHasTakesFewLargePages) {
  constexpr Bytes kHuge = Bytes{1} << 56;
  LiveRanges live;
  live.instants = 4;
  live.ranges = {{kHuge, 0, 2}, {kHuge / 2, 2, 4}, {kHuge / 4, 1, 3}, {1024, 0, 4}};
  const DevicePlacement placement = place(live);
  expect_valid(live, placement);
  EXPECT_EQ(placement.page_bytes, page_bytes(live, kDevicePages));
  EXPECT_LE(placement.bytes() / placement.page_bytes, kDevicePages.most);
  EXPECT_GE(placement.bytes(), placement.lower_bound);
  EXPECT_LE(placement.bytes(), placement.lower_bound + 2 * placement.page_bytes);
  EXPECT_EQ(placed_size(live).bytes, placement.bytes());
  // 8.8 TB are in pages of a device as they are.
  live.ranges = {{kDevicePages.most * kDevicePage, 0, 4}};
  EXPECT_EQ(page_bytes(live, kDevicePages), kDevicePage);
  live.ranges = {{kDevicePages.most * kDevicePage + 1, 0, 4}};
  EXPECT_EQ(page_bytes(live, kDevicePages), 2 * kDevicePage);
}

TEST(Placement, NearTheFewestPages) {
  constexpr Bytes kSmall = 6 * kPlacementAlignment;
  constexpr int kCases = 1000;
  int fewest = 0;
  std::cout << "seeds 1 to " << kCases << "\n";
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const LiveRanges live = random_ranges(random, 9, 3 * kSmall / 2, 4);
    const DevicePlacement placement = place(live, kSmall);
    expect_valid(live, placement);
    const auto bound = static_cast<std::int32_t>((placement.lower_bound + kSmall - 1) / kSmall);
    const std::int32_t least = FewestPages(live, kSmall).find(bound);
    ASSERT_GE(placement.pages, least);
    ASSERT_LE(placement.pages, least + 1);
    fewest += placement.pages == least ? 1 : 0;
  }
  std::cout << fewest << " of " << kCases << " take the fewest pages that can be\n";
  EXPECT_GE(fewest, kCases * 99 / 100);
}

// A rectangle of bytes and time, cut into blocks: the fewest bytes are known.
void cut(std::mt19937_64& random, Bytes bytes, std::int32_t begin, std::int32_t end, int cuts,
         std::vector<LiveRange>& blocks) {
  const Bytes units = bytes / kPlacementAlignment;
  const bool across = random() % 2 == 0;
  if (cuts == 0 || (across ? units < 2 : end - begin < 2)) {
    blocks.push_back({bytes, begin, end});
    return;
  }
  if (across) {
    const Bytes first = (1 + static_cast<Bytes>(random() % static_cast<std::uint64_t>(units - 1))) *
                        kPlacementAlignment;
    cut(random, first, begin, end, cuts - 1, blocks);
    cut(random, bytes - first, begin, end, cuts - 1, blocks);
    return;
  }
  const std::int32_t middle =
      begin + 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(end - begin - 1));
  cut(random, bytes, begin, middle, cuts - 1, blocks);
  cut(random, bytes, middle, end, cuts - 1, blocks);
}

TEST(Placement, RectanglesThatWereCutIntoBlocks) {
  constexpr Bytes kRectangle = 200 * kDevicePage;
  constexpr int kCases = 200;
  Bytes most = 0;
  Bytes all = 0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LiveRanges live{400, {}, {}};
    cut(random, kRectangle, 0, live.instants, 9, live.ranges);
    std::shuffle(live.ranges.begin(), live.ranges.end(), random);
    const DevicePlacement placement = place(live);
    ASSERT_EQ(placement.lower_bound, kRectangle);
    ASSERT_TRUE(check_placement(live, placement).empty());
    most = std::max(most, placement.bytes() - kRectangle);
    all += placement.bytes() - kRectangle;
  }
  std::cout << "of " << kCases << " rectangles of 400 MiB: " << (all / kCases >> 10)
            << " KiB above on average, at most " << (most >> 10) << " KiB\n";
  EXPECT_LE(all / kCases, kRectangle / 30);
  EXPECT_LE(most, kRectangle / 10);
}

TEST(PlacementCheck, NamesWhatSharesBytes) {
  const LiveRanges live{
      4, {{kPage, 0, 3}, {kPage / 2, 2, 4}, {kPage, 3, 5}, {3 * kPage, 0, 1}}, {}};
  DevicePlacement placement = place(live, kPage);
  EXPECT_TRUE(check_placement(live, placement).empty());
  // The first and the third on one page: the third goes on in the next period.
  placement.pages_of =
      Grouped<std::int32_t>(4, std::vector<std::pair<std::size_t, std::int32_t>>{
                                   {0, 0}, {1, 1}, {2, 0}, {3, 2}, {3, 3}, {3, 4}});
  placement.pages = 5;
  placement.offset = {0, 0, 0, 0};
  auto conflicts = check_placement(live, placement);
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(std::minmax(conflicts[0].range, conflicts[0].other), std::minmax(0, 2));
  EXPECT_EQ(conflicts[0].page, 0);
  // Behind one another they may.
  placement.pages_of =
      Grouped<std::int32_t>(4, std::vector<std::pair<std::size_t, std::int32_t>>{
                                   {0, 0}, {1, 1}, {2, 2}, {3, 1}, {3, 3}, {3, 4}});
  EXPECT_TRUE(check_placement(live, placement).empty());
  placement.pages_of = Grouped<std::int32_t>(
      4, std::vector<std::pair<std::size_t, std::int32_t>>{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {3, 4}});
  conflicts = check_placement(live, placement);
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].range, 3);
  EXPECT_EQ(conflicts[0].other, -1) << "it has two pages of three";
  placement.offset[1] = 8;
  EXPECT_EQ(check_placement(live, placement).size(), 2U) << "nor is that aligned";
}

}  // namespace
}  // namespace stowage::simulator
