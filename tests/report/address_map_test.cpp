#include "report/address_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace stowage::report {
namespace {

TEST(AddressMap, TakesTheLowestGapThatIsLargeEnough) {
  AddressMap map;
  const Bytes a = map.take(10);
  const Bytes b = map.take(20);
  const Bytes c = map.take(30);
  EXPECT_EQ(a, 0);
  EXPECT_EQ(b, 10);
  EXPECT_EQ(c, 30);
  map.give_back(a, 10);
  EXPECT_EQ(map.take(15), 60);  // the gap at 0 is too small
  map.give_back(b, 20);         // joins it: 0 .. 30
  EXPECT_EQ(map.take(25), 0);
  EXPECT_EQ(map.take(5), 25);
  EXPECT_EQ(map.end(), 75);
}

TEST(AddressMap, BlocksNeverOverlapAndEverythingGoesBack) {
  std::mt19937_64 dice(7);
  AddressMap map;
  struct Block {
    Bytes address, bytes;
  };
  std::vector<Block> blocks;
  Bytes taken = 0;
  Bytes most = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    if (blocks.empty() || dice() % 100 < 52) {
      const Bytes bytes = 1 + static_cast<Bytes>(dice() % 50);
      const Bytes at = map.take(bytes);
      for (const Block& other : blocks) {
        ASSERT_TRUE(at + bytes <= other.address || other.address + other.bytes <= at);
      }
      ASSERT_LE(at + bytes, map.end());
      blocks.push_back({at, bytes});
      taken += bytes;
      most = std::max(most, taken);
    } else {
      std::swap(blocks[dice() % blocks.size()], blocks.back());
      map.give_back(blocks.back().address, blocks.back().bytes);
      taken -= blocks.back().bytes;
      blocks.pop_back();
    }
  }
  EXPECT_GE(map.end(), most);
  for (const Block& block : blocks) map.give_back(block.address, block.bytes);
  EXPECT_EQ(map.take(map.end()), 0);  // one piece again
}

}  // namespace
}  // namespace stowage::report
