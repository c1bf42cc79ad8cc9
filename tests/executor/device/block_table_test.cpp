#include "executor/device/block_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

namespace stowage::executor {
namespace {

const void* address(std::uintptr_t value) {
  return reinterpret_cast<const void*>(value);
}

TEST(BlockTable, FindsWhatWasInserted) {
  BlockTable table;
  table.insert({.address = address(64), .bytes = 7, .serial = 3, .tag = -1});
  ASSERT_NE(table.find(address(64)), nullptr);
  EXPECT_EQ(table.find(address(64))->bytes, 7);
  EXPECT_EQ(table.find(address(64))->serial, 3);
  EXPECT_EQ(table.find(address(65)), nullptr);
  EXPECT_EQ(table.find(nullptr), nullptr);
  EXPECT_FALSE(table.erase(address(128)).has_value());
  EXPECT_FALSE(table.erase(nullptr).has_value());
  const auto erased = table.erase(address(64));
  ASSERT_TRUE(erased.has_value());
  EXPECT_EQ(erased->serial, 3);
  EXPECT_EQ(table.size(), 0u);
}

// Few distinct addresses, so that runs form, wrap and break; far more blocks than the first size.
TEST(BlockTable, AgreesWithAMapOnRandomSequences) {
  std::mt19937_64 random(7);
  BlockTable table;
  std::unordered_map<const void*, std::int64_t> oracle;
  for (std::int64_t serial = 0; serial < 200'000; ++serial) {
    const void* const key = address(64 * (1 + random() % 12'000));
    if (const auto it = oracle.find(key); it != oracle.end()) {
      const auto erased = table.erase(key);
      ASSERT_TRUE(erased.has_value());
      ASSERT_EQ(erased->serial, it->second);
      oracle.erase(it);
    } else {
      ASSERT_EQ(table.find(key), nullptr);
      table.insert({.address = key, .bytes = 1, .serial = serial, .tag = 0});
      oracle[key] = serial;
    }
  }
  ASSERT_EQ(table.size(), oracle.size());
  for (const auto& [key, serial] : oracle) {
    ASSERT_NE(table.find(key), nullptr);
    ASSERT_EQ(table.find(key)->serial, serial);
  }
}

}  // namespace
}  // namespace stowage::executor
