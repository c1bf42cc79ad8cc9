#include "executor/device/tracked_allocator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "executor/device/allocation_tag.h"

namespace stowage::executor {
namespace {

using ::testing::ElementsAre;

TrackedAllocator& allocator() {
  static TrackedAllocator* const installed = *TrackedAllocator::install();
  return *installed;
}

// Events as {+1 alloc or -1 free, serial since the log began, bytes, tag}.
class Log final : public AllocationListener {
 public:
  using Row = std::tuple<int, std::int64_t, Bytes, std::int64_t>;

  Log() : first_(allocator().next_serial()) { allocator().set_listener(this); }
  ~Log() override { allocator().set_listener(nullptr); }
  void on_alloc(const AllocationEvent& event) override { add(1, event); }
  void on_free(const AllocationEvent& event) override { add(-1, event); }

  std::vector<Row> rows;
  std::vector<Bytes> live_at_event;

 private:
  void add(int change, const AllocationEvent& event) {
    EXPECT_EQ(event.is_free, change < 0);
    rows.emplace_back(change, event.serial - first_, event.bytes, event.tag);
    live_at_event.push_back(event.requested);
  }

  std::int64_t first_;
};

TEST(TrackedAllocator, CountsAHandComputedSequence) {
  const Bytes base = allocator().stats().requested;
  allocator().reset_peak();
  const std::int64_t first = allocator().stats().allocations;
  {
    c10::DataPtr a = allocator().allocate(100);  // 100
    c10::DataPtr b = allocator().allocate(50);   // 150
    EXPECT_EQ(allocator().stats().requested - base, 150);
    a.clear();                                  // 50
    c10::DataPtr c = allocator().allocate(80);  // 130: the peak stays 150
    EXPECT_EQ(allocator().stats().requested - base, 130);
    EXPECT_EQ(allocator().stats().peak_requested - base, 150);
    allocator().reset_peak();
    EXPECT_EQ(allocator().stats().peak_requested - base, 130);
    c10::DataPtr d = allocator().allocate(1);  // 131
    EXPECT_EQ(allocator().stats().peak_requested - base, 131);
  }
  const MemoryStats stats = allocator().stats();
  EXPECT_EQ(stats.requested, base);
  EXPECT_EQ(stats.active, stats.requested);
  EXPECT_EQ(stats.peak_active, stats.peak_requested);
  EXPECT_EQ(stats.reserved, -1);
  EXPECT_EQ(stats.peak_reserved, -1);
  EXPECT_EQ(stats.allocations - first, 4);
}

TEST(TrackedAllocator, EveryCpuTensorPassesThroughIt) {
  const Bytes base = allocator().stats().requested;
  at::Tensor tensor = at::zeros({3, 5});
  EXPECT_EQ(allocator().stats().requested - base, 60);
  EXPECT_EQ(allocator().serial_of(tensor.data_ptr()), allocator().next_serial() - 1);
  const at::Tensor view = tensor.narrow(0, 1, 2);
  EXPECT_EQ(allocator().stats().requested - base, 60) << "a view is no allocation";
  EXPECT_EQ(allocator().serial_of(view.data_ptr()), -1) << "not the start of a block";
  tensor.reset();
  EXPECT_EQ(allocator().stats().requested - base, 60) << "the view holds the storage";
}

TEST(TrackedAllocator, ListenerSeesProgramOrderTagsAndCounters) {
  const Bytes base = allocator().stats().requested;
  Log log;
  {
    at::Tensor a = at::empty({10}, at::kByte);
    at::Tensor b;
    {
      const AllocationTagGuard tag(42);
      b = at::empty({20}, at::kByte);
    }
    a.resize_({30});  // a new block, then the old one goes
    b.reset();
  }
  EXPECT_THAT(log.rows,
              ElementsAre(Log::Row{1, 0, 10, kStepAllocation}, Log::Row{1, 1, 20, 42},
                          Log::Row{1, 2, 30, kStepAllocation}, Log::Row{-1, 0, 10, kStepAllocation},
                          Log::Row{-1, 1, 20, 42}, Log::Row{-1, 2, 30, kStepAllocation}));
  EXPECT_THAT(log.live_at_event,
              ElementsAre(base + 10, base + 30, base + 60, base + 50, base + 30, base));
}

TEST(TrackedAllocator, ZeroBytesAreNoEvent) {
  const MemoryStats before = allocator().stats();
  Log log;
  const c10::DataPtr nothing = allocator().allocate(0);
  const at::Tensor empty = at::empty({0, 7});
  EXPECT_EQ(nothing.get(), nullptr);
  EXPECT_EQ(empty.data_ptr(), nullptr);
  EXPECT_TRUE(log.rows.empty());
  EXPECT_EQ(allocator().stats().allocations, before.allocations);
}

TEST(TrackedAllocator, BlocksAreAlignedAndRawAllocationWorks) {
  for (std::size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
    const Bytes base = allocator().stats().requested;
    void* const data = allocator().raw_allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
    EXPECT_EQ(allocator().stats().requested - base, static_cast<Bytes>(bytes));
    allocator().raw_deallocate(data);
    EXPECT_EQ(allocator().stats().requested, base);
  }
  allocator().raw_deallocate(nullptr);
  const c10::DataPtr source = allocator().allocate(4);
  static_cast<char*>(source.get())[3] = 'x';
  const c10::DataPtr copy = allocator().clone(source.get(), 4);
  EXPECT_EQ(static_cast<const char*>(copy.get())[3], 'x');
}

TEST(TrackedAllocator, RefusalsAreOutOfMemoryAndLeaveNoTrace) {
  const MemoryStats before = allocator().stats();
  EXPECT_THROW(static_cast<void>(allocator().allocate(std::size_t{1} << 62)),
               c10::OutOfMemoryError);
  EXPECT_THROW(static_cast<void>(allocator().allocate(~std::size_t{0})), c10::OutOfMemoryError);
  allocator().set_limit(before.requested + 100);
  EXPECT_NO_THROW(static_cast<void>(allocator().allocate(100)));
  EXPECT_THROW(static_cast<void>(allocator().allocate(101)), c10::OutOfMemoryError);
  allocator().set_limit(0);
  EXPECT_NO_THROW(static_cast<void>(allocator().allocate(101)));
  EXPECT_EQ(allocator().stats().requested, before.requested);
  EXPECT_EQ(allocator().stats().allocations, before.allocations + 2) << "refusals get no serial";
}

TEST(TrackedAllocator, ThreadsCountTogether) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  const MemoryStats before = allocator().stats();
  std::vector<std::vector<std::int64_t>> serials(kThreads);
  std::vector<c10::DataPtr> left(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 1; i <= kRounds; ++i) {
        c10::DataPtr data = allocator().allocate(i % 97 + 1);
        serials[t].push_back(allocator().serial_of(data.get()));
        left[t] = std::move(data);  // frees the one before
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::int64_t> all;
  for (const auto& each : serials) all.insert(each.begin(), each.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kThreads * kRounds));
  EXPECT_EQ(*all.begin(), before.allocations);
  left.clear();  // here, not where they were made
  EXPECT_EQ(allocator().stats().requested, before.requested);
  EXPECT_EQ(allocator().stats().allocations, before.allocations + kThreads * kRounds);
}

TEST(TrackedAllocator, InstallTwiceIsTheSame) {
  const auto again = TrackedAllocator::install();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, &allocator());
}

// Tensors in static objects die after main, when other static objects may be gone.
TEST(TrackedAllocatorDeathTest, TensorsMayOutliveMain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static_cast<void>(allocator());
        static at::Tensor survivor = at::zeros({100});
        std::exit(survivor.numel() == 100 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stowage::executor
