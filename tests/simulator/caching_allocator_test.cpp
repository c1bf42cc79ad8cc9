// The allocator's rules by hand, and against the oracle on random requests with fixed seeds.
#include "simulator/allocator/caching_allocator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/simulator/oracle_allocator.h"

namespace stowage::simulator {
namespace {

constexpr Bytes kMebibyte = 1 << 20;
using Piece = CachingAllocator::Piece;

// Counted from the first segment; later ones lie below it.
constexpr Bytes kFirst = SegmentAddresses::kTop - 32 * kMebibyte;

Bytes address_in(const CachingAllocator& allocator, CachingAllocator::Block block) {
  return allocator.address_of(block) - kFirst;
}

std::vector<Piece> layout_of(const CachingAllocator& allocator) {
  std::vector<Piece> pieces = allocator.layout();
  for (Piece& piece : pieces) piece.address -= kFirst;
  return pieces;
}

// Segments of 20 MiB leave 12 in their slots, where one of 10 or 2 MiB fits; the lowest such place
// is taken. One of 34 MiB takes two slots.
TEST(SegmentAddresses, FallInSlotsOf32MiB) {
  SegmentAddresses addresses;
  const auto from_top = [&](Bytes mib) {
    return (SegmentAddresses::kTop - addresses.take(mib * kMebibyte)) / kMebibyte;
  };
  EXPECT_EQ(from_top(20), 32);
  EXPECT_EQ(from_top(20), 64);
  EXPECT_EQ(from_top(10), 64 - 20);
  EXPECT_EQ(from_top(2), 64 - 30);
  EXPECT_EQ(from_top(2), 32 - 20);
  EXPECT_EQ(from_top(34), 128);
  EXPECT_EQ(from_top(32), 160);
  EXPECT_EQ(from_top(30), 128 - 34);
  EXPECT_EQ(from_top(64), 224);
}

TEST(CachingAllocator, SmallRequestsShareA2MiBSegment) {
  CachingAllocator a;
  const auto one = a.allocate(1);
  const auto two = a.allocate(513);
  const auto most = a.allocate(kMebibyte);  // the largest small one
  EXPECT_EQ(a.size_of(one), 512);
  EXPECT_EQ(a.size_of(two), 1024);
  EXPECT_EQ(address_in(a, two), 512);
  EXPECT_EQ(address_in(a, most), 1536);
  EXPECT_EQ(a.active(), 512 + 1024 + kMebibyte);
  EXPECT_EQ(a.reserved(), 2 * kMebibyte);
  // 1 MiB - 1536 is left: one byte more does not fit, and 512 less leaves a block of 512.
  static_cast<void>(a.allocate(kMebibyte - 1535));
  EXPECT_EQ(a.reserved(), 4 * kMebibyte);
  const auto rest = a.allocate(kMebibyte - 2048);
  EXPECT_EQ(a.size_of(rest), kMebibyte - 2048);
  EXPECT_EQ(address_in(a, a.allocate(512)), 2 * kMebibyte - 512);
}

TEST(CachingAllocator, NothingForNothing) {
  CachingAllocator a;
  const auto none = a.allocate(0);
  EXPECT_EQ(none, CachingAllocator::kNoBlock);
  a.free(none);
  EXPECT_EQ(a.reserved(), 0);
  EXPECT_TRUE(layout_of(a).empty());
}

// Above 1 MiB and below 10 MiB: from segments of 20 MiB. From 10 MiB on: the size rounded to 2 MiB.
TEST(CachingAllocator, SegmentsOfTheLargePool) {
  for (const auto& [request, segment] : {std::pair<Bytes, Bytes>{kMebibyte + 1, 20 * kMebibyte},
                                         {10 * kMebibyte - 512, 20 * kMebibyte},
                                         {10 * kMebibyte - 511, 10 * kMebibyte},
                                         {10 * kMebibyte, 10 * kMebibyte},
                                         {10 * kMebibyte + 1, 12 * kMebibyte}}) {
    CachingAllocator a;
    static_cast<void>(a.allocate(request));
    EXPECT_EQ(a.reserved(), segment) << request;
  }
}

// A rest of 1 MiB stays in the block, one of 1 MiB + 512 is split off.
TEST(CachingAllocator, RestsOfTheLargePool) {
  CachingAllocator a;
  const auto whole = a.allocate(11 * kMebibyte);  // of a segment of 12 MiB
  EXPECT_EQ(a.size_of(whole), 12 * kMebibyte);
  EXPECT_EQ(a.active(), 12 * kMebibyte);
  CachingAllocator b;
  const auto split = b.allocate(11 * kMebibyte - 512);
  EXPECT_EQ(b.size_of(split), 11 * kMebibyte - 512);
  EXPECT_EQ(layout_of(b), (std::vector<Piece>{{0, 11 * kMebibyte - 512, true},
                                              {11 * kMebibyte - 512, kMebibyte + 512, false}}));
}

// Free blocks of 4, 3 and 3 MiB between used ones of 2: a request of 3 takes the first of 3, the
// next one the second; a request of 2.5 then takes the 4, of which 1.5 are split off, and the
// next one the 4 at the segment's end.
TEST(CachingAllocator, BestFitThenLowestAddress) {
  CachingAllocator a;
  std::vector<CachingAllocator::Block> blocks;
  for (const Bytes mib : {4, 2, 3, 2, 3, 2}) blocks.push_back(a.allocate(mib * kMebibyte));
  ASSERT_EQ(a.reserved(), 20 * kMebibyte);
  for (const std::size_t i : {0, 4, 2}) a.free(blocks[i]);
  EXPECT_EQ(address_in(a, a.allocate(3 * kMebibyte)), 6 * kMebibyte);
  EXPECT_EQ(address_in(a, a.allocate(3 * kMebibyte)), 11 * kMebibyte);
  EXPECT_EQ(address_in(a, a.allocate(5 * kMebibyte / 2)), 0);
  EXPECT_EQ(address_in(a, a.allocate(5 * kMebibyte / 2)), 16 * kMebibyte);
  EXPECT_EQ(address_in(a, a.allocate(3 * kMebibyte / 2)), 5 * kMebibyte / 2);
  EXPECT_EQ(a.reserved(), 20 * kMebibyte);
}

TEST(CachingAllocator, FreedBlocksMergeWithinTheirSegment) {
  CachingAllocator a;
  const auto first = a.allocate(10 * kMebibyte);
  const auto second = a.allocate(10 * kMebibyte);  // a segment of its own, right behind
  const auto small = a.allocate(512);
  a.free(first);
  a.free(second);
  a.free(small);
  EXPECT_EQ(layout_of(a), (std::vector<Piece>{{0, 10 * kMebibyte, false},
                                              {10 * kMebibyte, 10 * kMebibyte, false},
                                              {20 * kMebibyte, 2 * kMebibyte, false}}));
  EXPECT_EQ(a.active(), 0);
  EXPECT_EQ(a.reserved(), 22 * kMebibyte);
  // 20 MiB are free in a row, but in two segments.
  static_cast<void>(a.allocate(20 * kMebibyte));
  EXPECT_EQ(a.reserved(), 42 * kMebibyte);
}

TEST(CachingAllocator, FreeNeighboursOnBothSidesMerge) {
  CachingAllocator a;
  std::vector<CachingAllocator::Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(a.allocate(5 * kMebibyte));
  a.free(blocks[0]);
  a.free(blocks[2]);
  a.free(blocks[1]);
  EXPECT_EQ(layout_of(a), (std::vector<Piece>{{0, 15 * kMebibyte, false},
                                              {15 * kMebibyte, 5 * kMebibyte, true}}));
}

// Under a limit of 24 MiB: whole free segments go back to the driver, of both pools; a segment that
// is partly used stays.
TEST(CachingAllocator, CachedSegmentsGoBackAtTheLimit) {
  CachingAllocator a(24 * kMebibyte);
  a.free(a.allocate(12 * kMebibyte));
  a.free(a.allocate(512));
  ASSERT_EQ(a.reserved(), 14 * kMebibyte);
  const auto large = a.allocate(20 * kMebibyte);
  ASSERT_GE(large, 0);
  EXPECT_EQ(a.reserved(), 20 * kMebibyte);
  EXPECT_EQ(a.peak_reserved(), 20 * kMebibyte);
  const auto small = a.allocate(512);
  EXPECT_EQ(a.reserved(), 22 * kMebibyte);
  EXPECT_EQ(a.allocate(4 * kMebibyte), CachingAllocator::kOutOfMemory);
  EXPECT_EQ(a.reserved(), 22 * kMebibyte);
  EXPECT_EQ(a.active(), 20 * kMebibyte + 512);
  a.free(large);
  EXPECT_GE(a.allocate(22 * kMebibyte), 0);  // the large one went back, the small pool's stays
  a.free(small);
  EXPECT_EQ(a.reserved(), 24 * kMebibyte);
}

TEST(CachingAllocator, PeaksSinceTheReset) {
  CachingAllocator a;
  const auto block = a.allocate(2 * kMebibyte);
  a.free(a.allocate(4 * kMebibyte));
  EXPECT_EQ(a.peak_active(), 6 * kMebibyte);
  a.reset_peaks();
  EXPECT_EQ(a.peak_active(), 2 * kMebibyte);
  EXPECT_EQ(a.peak_reserved(), 20 * kMebibyte);
  a.free(block);
  EXPECT_EQ(a.peak_active(), 2 * kMebibyte);
}

Bytes random_size(std::mt19937_64& random) {
  const auto pick = [&](Bytes most) {
    return static_cast<Bytes>(random() % static_cast<std::uint64_t>(most)) + 1;
  };
  switch (random() % 6) {
    case 0:
      return pick(4096);
    case 1:
      return pick(2 * kMebibyte);
    case 2:
      return pick(12 * kMebibyte);
    case 3:
      return pick(50 * kMebibyte);
    case 4:
      return kMebibyte * pick(14);  // equal sizes, exact fits
    default:
      return random() % 20 == 0 ? 0 : 512 * pick(8);
  }
}

TEST(CachingAllocator, EqualsTheOracleOnRandomRequests) {
  int out_of_memory = 0;
  int reused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const Bytes limit = seed % 3 == 0 ? static_cast<Bytes>(random() % 300 + 20) * kMebibyte : -1;
    CachingAllocator fast(limit);
    testing::OracleAllocator slow(limit);
    std::vector<std::pair<CachingAllocator::Block, Bytes>> live;
    Bytes requested = 0;
    std::vector<Bytes> sizes;
    for (int i = 0; i < 300; ++i) {
      const Bytes before = fast.reserved();
      if (live.empty() || random() % 100 < 55) {
        const Bytes bytes = random_size(random);
        const auto block = fast.allocate(bytes);
        const Bytes address = slow.allocate(bytes);
        if (block == CachingAllocator::kOutOfMemory) {
          ASSERT_EQ(address, -2) << seed;
          ++out_of_memory;
          continue;
        }
        if (block == CachingAllocator::kNoBlock) {
          ASSERT_EQ(address, -1);
          continue;
        }
        ASSERT_EQ(fast.address_of(block), address) << seed << " request " << i;
        ASSERT_GE(fast.size_of(block), bytes);
        reused += fast.reserved() == before;
        live.emplace_back(block, address);
        sizes.push_back(bytes);
        requested += bytes;
      } else {
        const std::size_t row = random() % live.size();
        fast.free(live[row].first);
        slow.free(live[row].second);
        requested -= sizes[row];
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(row));
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(row));
      }
      ASSERT_EQ(fast.active(), slow.active()) << seed;
      ASSERT_EQ(fast.reserved(), slow.reserved()) << seed;
      ASSERT_LE(requested, fast.active());
      ASSERT_LE(fast.active(), fast.reserved());
      ASSERT_TRUE(limit < 0 || fast.reserved() <= limit);
      if (i % 10 == 0) {
        ASSERT_EQ(fast.layout(), slow.layout()) << seed;
      }
    }
    for (const auto& [block, address] : live) fast.free(block);
    ASSERT_EQ(fast.active(), 0);
    Bytes end = 0;
    for (const Piece& piece : fast.layout()) {  // one free block a segment, none overlapping
      ASSERT_FALSE(piece.allocated);
      ASSERT_GE(piece.address, end);
      ASSERT_EQ(piece.size % (2 * kMebibyte), 0);
      end = piece.address + piece.size;
    }
  }
  EXPECT_GT(out_of_memory, 100);
  EXPECT_GT(reused, 10'000);
}

}  // namespace
}  // namespace stowage::simulator
