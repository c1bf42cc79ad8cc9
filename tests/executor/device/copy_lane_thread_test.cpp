#include "executor/device/copy_lane_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

namespace stowage::executor {
namespace {

TEST(CopyLaneThread, CopiesAndCounts) {
  CopyLaneThread lane;
  std::vector<int> source(1000);
  std::iota(source.begin(), source.end(), 0);
  std::vector<int> destination(1000, -1);
  EXPECT_TRUE(lane.done(0));
  const auto number = lane.submit(destination.data(), source.data(), 4000);
  EXPECT_EQ(number, 1u);
  lane.wait(number);
  EXPECT_TRUE(lane.done(number));
  EXPECT_EQ(destination, source);
  EXPECT_EQ(lane.wait(number), 0) << "waiting for what is done is free";
  EXPECT_EQ(lane.wait(0), 0);
  EXPECT_EQ(lane.totals().copies, 1u);
  EXPECT_EQ(lane.totals().bytes, 4000);
}

TEST(CopyLaneThread, NothingCompletesBeforeItsTurn) {
  std::counting_semaphore<> permits(0);
  CopyLaneThread lane([&](std::uint64_t) { permits.acquire(); });
  std::vector<int> source{1, 2, 3};
  std::vector<int> destination(3, 0);
  for (std::size_t i = 0; i < 3; ++i) lane.submit(&destination[i], &source[i], 4);
  EXPECT_FALSE(lane.done(1));
  permits.release();
  lane.wait(1);
  EXPECT_EQ(destination[0], 1);
  EXPECT_FALSE(lane.done(2));
  EXPECT_FALSE(lane.done(3));
  permits.release(2);
  lane.wait(3);
  EXPECT_TRUE(lane.done(2)) << "first come, first served";
  EXPECT_EQ(destination, source);
}

// A chain: copy i moves slot i to slot i + 1, so any other order shows in the last slot.
TEST(CopyLaneThread, RandomDelaysKeepTheOrder) {
  constexpr std::size_t kCopies = 400;
  std::mt19937 random(11);
  std::counting_semaphore<> permits(0);
  std::vector<std::uint64_t> seen;
  std::vector<std::uint64_t> slots(kCopies + 1, 0);
  slots[0] = 77;
  {
    CopyLaneThread lane([&](std::uint64_t number) {
      permits.acquire();
      seen.push_back(number);
    });
    std::size_t submitted = 0;
    std::size_t permitted = 0;
    while (permitted < kCopies) {
      const std::size_t burst = std::min<std::size_t>(random() % 7, kCopies - submitted);
      for (std::size_t i = 0; i < burst; ++i, ++submitted) {
        EXPECT_EQ(lane.submit(&slots[submitted + 1], &slots[submitted], 8), submitted + 1);
      }
      const std::size_t free = std::min<std::size_t>(random() % 5, submitted - permitted);
      permits.release(static_cast<std::ptrdiff_t>(free));
      permitted += free;
      if (permitted > 0 && random() % 3 == 0) {
        const std::size_t awaited = 1 + random() % permitted;
        lane.wait(awaited);
        EXPECT_EQ(slots[awaited], 77u);
      }
    }
    lane.drain();
    EXPECT_EQ(lane.totals().copies, kCopies);
  }
  std::vector<std::uint64_t> expected(kCopies);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(slots[kCopies], 77u);
}

TEST(CopyLaneThread, DestructionFinishesWhatWasSubmitted) {
  std::vector<std::uint64_t> slots(101, 0);
  slots[0] = 5;
  {
    CopyLaneThread lane;
    for (std::size_t i = 0; i < 100; ++i) lane.submit(&slots[i + 1], &slots[i], 8);
  }
  EXPECT_EQ(slots[100], 5u);
}

TEST(CopyLaneThread, ZeroBytesIsACopyToo) {
  CopyLaneThread lane;
  const auto number = lane.submit(nullptr, nullptr, 0);
  lane.wait(number);
  EXPECT_EQ(lane.totals().copies, 1u);
  EXPECT_EQ(lane.totals().bytes, 0);
}

// The hook lets the copy go only once the caller is about to wait, so sooner or later (at once, but
// for an unlucky pause of the caller) the wait finds the copy unfinished.
TEST(CopyLaneThread, WaitMeasuresTheTimeStoodStill) {
  std::atomic<std::uint64_t> about_to_wait{0};
  CopyLaneThread lane([&](std::uint64_t number) {
    while (about_to_wait.load() < number) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  });
  const int source = 1;
  int destination = 0;
  Nanoseconds stood = 0;
  for (int attempt = 0; attempt < 1000 && stood == 0; ++attempt) {
    const auto number = lane.submit(&destination, &source, 4);
    about_to_wait.store(number);
    stood = lane.wait(number);
  }
  EXPECT_GT(stood, 0);
}

}  // namespace
}  // namespace stowage::executor
