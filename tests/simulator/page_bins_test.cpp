// Pages for what does not fill one: pieces that fill a page together lie in one, whenever they are
// there.
#include "simulator/placement/page_bins.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stowage::simulator {
namespace {

constexpr Bytes kSmallPage = 4096;
constexpr Bytes kRest = kPlacementAlignment;

std::vector<Bin> packed(const std::vector<PagePiece>& pieces, std::int32_t instants) {
  const std::vector<Bytes> live_bytes(static_cast<std::size_t>(instants), kSmallPage);
  return pack_pages(pieces, kSmallPage, live_bytes, PackOrder::longest);
}

void expect_one_page(const std::vector<PagePiece>& pieces, std::int32_t instants) {
  std::string text = std::to_string(instants) + " instants:";
  for (const PagePiece& each : pieces) {
    text += " " + std::to_string(each.bytes) + " bytes in [" + std::to_string(each.begin) + ", " +
            std::to_string(each.end) + ")";
  }
  const std::vector<Bin> bins = packed(pieces, instants);
  ASSERT_EQ(bins.size(), 1U) << text;
  EXPECT_EQ(bins.front().pieces.size(), pieces.size()) << text;
}

// Bytes are summed up by stretches of time, 256 of them at most: around their number.
constexpr std::int32_t kInstants[] = {2, 3, 255, 256, 257, 511, 512, 600, 40'001};

TEST(PageBins, OneBehindTheOtherTakeOnePage) {
  int cases = 0;
  for (const std::int32_t n : kInstants) {
    for (const std::int32_t k : {1, n / 3, n / 2, n - 1}) {
      for (const std::int32_t j : {0, 1, k / 2}) {
        if (j >= k) continue;
        // The second goes on over the period's end, up to the first one's begin.
        const Bytes bytes = kSmallPage - kRest;
        expect_one_page({{0, bytes, j, k}, {1, bytes, k, n + j}}, n);
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 50);
}

TEST(PageBins, BesideOneThatLeavesJustEnough) {
  for (const std::int32_t n : kInstants) {
    for (const std::int32_t begin : {0, n / 3, n / 2, n - 1}) {
      for (const std::int32_t end : {begin + 1, begin + n / 2, begin + n}) {
        if (end <= begin) continue;
        expect_one_page({{0, kSmallPage - kRest, 0, n}, {1, kRest, begin, end}}, n);
      }
    }
  }
}

TEST(PageBins, WhatIsThereAtOnceAndTooMuchTakesTwo) {
  for (const std::int32_t n : kInstants) {
    const Bytes bytes = kSmallPage - kRest;
    EXPECT_EQ(packed({{0, bytes, 0, n}, {1, bytes, n - 1, n}}, n).size(), 2U) << n;
  }
}

}  // namespace
}  // namespace stowage::simulator
