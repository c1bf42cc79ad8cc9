// The count of device memory, on entries of the allocator's tracker that are written by hand.
#include "executor/device/cuda/cuda_allocations.h"

#include <gtest/gtest.h>

#include <vector>

namespace stowage::executor {
namespace {

using Entry = c10::CachingDeviceAllocator::TraceEntry;

class Entries : public ::testing::Test {
 protected:
  void add(Entry::Action action, std::size_t address, std::size_t bytes = 512,
           c10::DeviceIndex device = 0) {
    allocations.on_entry(Entry(action, device, address, bytes, nullptr, {0, 0}, {}));
  }

  CudaAllocations allocations{0};
};

TEST_F(Entries, AreCountedAndNumbered) {
  add(Entry::SEGMENT_ALLOC, 0x1000, 2 << 20);
  add(Entry::ALLOC, 0x1000, 100);
  add(Entry::ALLOC, 0x2000, 30);
  add(Entry::ALLOC, 0x3000, 5, 1);  // another GPU's
  EXPECT_EQ(allocations.requested(), 130);
  EXPECT_EQ(allocations.serial_of(reinterpret_cast<const void*>(0x2000)), 1);
  add(Entry::FREE_REQUESTED, 0x1000);
  EXPECT_EQ(allocations.requested(), 30);
  add(Entry::FREE_COMPLETED, 0x1000);
  ASSERT_EQ(allocations.live().size(), 1U);
  EXPECT_EQ(allocations.live()[0].serial, 1);
  EXPECT_EQ(allocations.driver_allocations(), 1);
  EXPECT_EQ(allocations.delayed_frees(), 0);
}

TEST_F(Entries, AreNamedByAddress) {
  add(Entry::ALLOC, 0x1000, 100);
  add(Entry::ALLOC, 0x2000, 30);
  std::vector<simulator::ObservedBlock> blocks(3);
  blocks[0].address = 0x2000;
  blocks[1].address = 0x1000;  // free by now, as far as the snapshot knows
  blocks[2].address = 0x3000;
  blocks[0].allocated = blocks[2].allocated = true;
  allocations.name(blocks);
  EXPECT_EQ(blocks[0].serial, 1);
  EXPECT_EQ(blocks[0].requested, 30);
  EXPECT_EQ(blocks[0].tag, kStepAllocation);
  EXPECT_EQ(blocks[1].serial, -1);
  EXPECT_EQ(blocks[2].serial, -1);
}

TEST_F(Entries, AFreeThatIsDoneAtOnceIsNotDelayed) {
  add(Entry::ALLOC, 0x1000);
  add(Entry::FREE_REQUESTED, 0x1000);
  add(Entry::FREE_COMPLETED, 0x1000);
  add(Entry::ALLOC, 0x1000);
  add(Entry::FREE_REQUESTED, 0x1000);
  add(Entry::FREE_COMPLETED, 0x1000);
  EXPECT_EQ(allocations.delayed_frees(), 0);
}

// Done behind another allocation, though ahead of the next free.
TEST_F(Entries, AFreeThatAnAllocationOvertakesIsDelayed) {
  add(Entry::ALLOC, 0x1000);
  add(Entry::FREE_REQUESTED, 0x1000);
  add(Entry::ALLOC, 0x2000);
  add(Entry::FREE_COMPLETED, 0x1000);
  EXPECT_EQ(allocations.delayed_frees(), 1);
  add(Entry::FREE_REQUESTED, 0x2000);
  add(Entry::FREE_COMPLETED, 0x2000);
  EXPECT_EQ(allocations.delayed_frees(), 1);
}

TEST_F(Entries, AFreeThatAnotherOvertakesIsDelayed) {
  add(Entry::ALLOC, 0x1000);
  add(Entry::ALLOC, 0x2000);
  add(Entry::FREE_REQUESTED, 0x1000);
  add(Entry::FREE_REQUESTED, 0x2000);
  add(Entry::FREE_COMPLETED, 0x2000);
  add(Entry::FREE_COMPLETED, 0x1000);
  EXPECT_EQ(allocations.delayed_frees(), 1);
  add(Entry::ALLOC, 0x3000);
  add(Entry::FREE_REQUESTED, 0x3000);  // never done
  EXPECT_EQ(allocations.delayed_frees(), 2);
}

TEST_F(Entries, OfTheSetupAreKeptUntilItsEnd) {
  add(Entry::ALLOC, 0x1000, 100);
  allocations.begin_first_step();
  add(Entry::ALLOC, 0x2000, 30);
  allocations.end_setup();
  add(Entry::ALLOC, 0x3000, 5);
  allocations.begin_first_step();
  add(Entry::FREE_REQUESTED, 0x2000);
  const SetupHistory history = allocations.setup_history();
  ASSERT_EQ(history.events.size(), 2U);
  EXPECT_EQ(history.first_step, 1U);
  EXPECT_EQ(history.events[1].bytes, 30);
}

// A device that is made behind the first tensors.
TEST_F(Entries, BehindAdoptedOnesAreCountedWithThem) {
  const auto at = [](std::size_t address) { return reinterpret_cast<const void*>(address); };
  add(Entry::ALLOC, 0x1000, 100);  // told of ahead of the snapshot, and in it
  allocations.adopt({{at(0x1000), 100}, {at(0x2000), 700}, {at(0x3000), 40}});
  EXPECT_EQ(allocations.requested(), 840);
  EXPECT_EQ(allocations.counted().peak_rounded, 512 + 1024 + 512);
  EXPECT_EQ(allocations.serial_of(at(0x1000)), 0);
  EXPECT_EQ(allocations.serial_of(at(0x2000)), 1);
  add(Entry::FREE_REQUESTED, 0x2000);
  add(Entry::FREE_COMPLETED, 0x2000);
  EXPECT_EQ(allocations.requested(), 140);
  add(Entry::ALLOC, 0x2000, 30);
  EXPECT_EQ(allocations.serial_of(at(0x2000)), 3);
  const SetupHistory history = allocations.setup_history();
  EXPECT_EQ(history.events.size(), 5U);  // three allocations, a free and the last allocation
  EXPECT_EQ(history.adopted, 2);
}

// Its free came between snapshot and adoption.
TEST_F(Entries, OfABlockThatIsGoneByItsAdoptionAreNone) {
  const auto* const address = reinterpret_cast<const void*>(0x1000);
  add(Entry::FREE_REQUESTED, 0x1000);
  add(Entry::FREE_COMPLETED, 0x1000);
  allocations.adopt({{address, 100}});
  EXPECT_EQ(allocations.requested(), 0);
  EXPECT_EQ(allocations.serial_of(address), -1);
  add(Entry::ALLOC, 0x1000, 30);
  allocations.forget_unknown_frees();
  EXPECT_EQ(allocations.requested(), 30);
  EXPECT_EQ(allocations.serial_of(address), 0);
}

// A program whose setup nobody ends does not fill the memory with it.
TEST_F(Entries, OfAnEndlessSetupAreGivenUp) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  for (std::size_t i = 0; i < kMost / 2; ++i) {
    add(Entry::ALLOC, 0x1000);
    add(Entry::FREE_REQUESTED, 0x1000);
    add(Entry::FREE_COMPLETED, 0x1000);
  }
  EXPECT_EQ(allocations.setup_history().events.size(), kMost);
  add(Entry::ALLOC, 0x1000);
  EXPECT_TRUE(allocations.setup_history().events.empty());
  EXPECT_EQ(allocations.setup_history().first_step, 0U);
  allocations.begin_first_step();
  add(Entry::ALLOC, 0x2000);
  EXPECT_TRUE(allocations.setup_history().events.empty());
}

}  // namespace
}  // namespace stowage::executor
