#include "executor/host_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

TEST(HostPool, SlotsAreApartAndAligned) {
  HostPool pool(test_device());
  EXPECT_EQ(pool.bytes(), 0);
  const std::vector<Bytes> sizes = {1, 512, 513, 4096, 700};
  std::vector<HostPool::Slot> slots;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    slots.push_back(pool.take(sizes[i]));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slots[i].data()) % 512, 0U);
    std::memset(slots[i].data(), static_cast<int>(i + 1), static_cast<std::size_t>(sizes[i]));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (Bytes at = 0; at < sizes[i]; ++at) {
      ASSERT_EQ(slots[i].data()[at], static_cast<std::byte>(i + 1)) << i << " " << at;
    }
  }
  EXPECT_EQ(pool.bytes(), 4 * kMiB);
}

// 4, then 4 more, then 8; 20 at once have a chunk of their own.
TEST(HostPool, ChunksGrow) {
  HostPool pool(test_device());
  std::vector<HostPool::Slot> slots;
  slots.push_back(pool.take(3 * kMiB));
  EXPECT_EQ(pool.bytes(), 4 * kMiB);
  slots.push_back(pool.take(3 * kMiB));
  EXPECT_EQ(pool.bytes(), 8 * kMiB);
  slots.push_back(pool.take(3 * kMiB));
  EXPECT_EQ(pool.bytes(), 16 * kMiB);
  slots.push_back(pool.take(kMiB));
  EXPECT_EQ(pool.bytes(), 16 * kMiB);
  slots.push_back(pool.take(20 * kMiB));
  EXPECT_EQ(pool.bytes(), 36 * kMiB);
}

TEST(HostPool, AnEmptyChunkIsUsedAgain) {
  HostPool pool(test_device());
  for (int step = 0; step < 3; ++step) {
    std::vector<HostPool::Slot> slots;
    for (int i = 0; i < 8; ++i) slots.push_back(pool.take(2 * kMiB));
    EXPECT_EQ(pool.bytes(), 16 * kMiB) << step;
  }
  // Half of a chunk gone does not make room in it.
  HostPool::Slot first = pool.take(2 * kMiB);
  HostPool::Slot second = pool.take(2 * kMiB);
  first = {};
  HostPool::Slot third = pool.take(2 * kMiB);
  EXPECT_NE(third.data(), second.data());
  EXPECT_EQ(pool.bytes(), 16 * kMiB);
}

TEST(HostPool, ASlotOutlivesItsPool) {
  HostPool::Slot slot;
  EXPECT_EQ(slot.data(), nullptr);
  {
    HostPool pool(test_device());
    slot = pool.take(100);
  }
  std::memset(slot.data(), 7, 100);
  const HostPool::Slot moved = std::move(slot);
  EXPECT_EQ(moved.data()[99], std::byte{7});
}

TEST(HostPool, MoreThanTheMachineHas) {
  HostPool pool(test_device());
  EXPECT_THROW(static_cast<void>(pool.take(Bytes{1} << 49)), std::bad_alloc);
  EXPECT_EQ(pool.bytes(), 0);
}

}  // namespace
}  // namespace stowage::executor
