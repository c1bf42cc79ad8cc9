#include "executor/turn_line.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stowage::executor {
namespace {

using Place = TurnLine::Place;

TEST(TurnLine, TakesWorkInTheOrderOfTheTurns) {
  TurnLine line;
  std::vector<int> done;
  const TurnLine::Turn first = line.take();
  const TurnLine::Turn second = line.take();
  std::promise<void> started;
  std::future<void> other = std::async(std::launch::async, [&] {
    started.set_value();
    const Place place(line, second);
    done.push_back(2);
  });
  started.get_future().wait();
  EXPECT_EQ(other.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  {
    const Place place(line, first);
    done.push_back(1);
  }
  other.get();
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
}

// With a lock held during work this test would not end.
TEST(TurnLine, WorkThatIsPostedWaitsForNobody) {
  TurnLine line;
  std::vector<std::string> done;
  {
    const Place place(line, line.take());
    std::async(std::launch::async, [&] {
      line.post(line.take(), [&] { done.emplace_back("posted"); });
    }).get();
    done.emplace_back("first");
  }
  EXPECT_EQ(done, (std::vector<std::string>{"first", "posted"}));
  line.post(line.take(), [&] { done.emplace_back("at once"); });
  EXPECT_EQ(done.back(), "at once");
}

TEST(TurnLine, WorkMayComeBackToTheLine) {
  TurnLine line;
  std::vector<int> done;
  {
    const Place outer(line, line.take());
    done.push_back(1);
    {
      const Place inner(line, line.take());
      done.push_back(2);
      line.post(line.take(), [&] { done.push_back(4); });
    }
    done.push_back(3);
  }
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3, 4}));
  const Place next(line, line.take());  // the line goes on behind all of them
}

TEST(TurnLine, WhatPostedWorkThrowsComesOutOfTheNextPlace) {
  TurnLine line;
  line.post(line.take(), [] { throw std::runtime_error("posted"); });
  EXPECT_THROW(Place(line, line.take()), std::runtime_error);
  { const Place place(line, line.take()); }  // once
  line.post(line.take(), [] { throw std::runtime_error("posted"); });
  { const Place place(line, line.take(), TurnLine::Failures::dropped); }
  const Place place(line, line.take());
}

TEST(TurnLine, AnExceptionInsideLetsTheNextOneOn) {
  TurnLine line;
  EXPECT_THROW(
      {
        const Place place(line, line.take());
        throw std::runtime_error("work");
      },
      std::runtime_error);
  const Place place(line, line.take());
}

// Threads that claim numbers under a lock find their work done in that order, one at a time.
TEST(TurnLine, KeepsTheOrderOfClaimsOnManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  TurnLine line;
  std::mutex mutex;
  int claimed = 0;
  std::vector<int> done;
  std::atomic<int> inside{0};
  std::atomic<bool> was_alone{true};
  const auto work = [&](int number) {
    if (inside.fetch_add(1) != 0) was_alone = false;
    done.push_back(number);
    inside.fetch_sub(1);
  };
  std::vector<std::future<void>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      std::mt19937 random(static_cast<std::uint32_t>(t));
      for (int i = 0; i < kEach; ++i) {
        TurnLine::Turn turn = 0;
        int number = 0;
        {
          const std::lock_guard lock(mutex);
          number = claimed++;
          turn = line.take();
        }
        if (random() % 3 == 0) {
          line.post(turn, [&work, number] { work(number); });
          continue;
        }
        const Place place(line, turn);
        work(number);
        if (random() % 3 == 0) {
          // Part of the work around it; claimed like any other.
          const std::lock_guard lock(mutex);
          const Place inner(line, line.take());
        }
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  { const Place place(line, line.take()); }
  ASSERT_EQ(done.size(), static_cast<std::size_t>(kThreads * kEach));
  for (int i = 0; i < kThreads * kEach; ++i) ASSERT_EQ(done[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(was_alone);
}

}  // namespace
}  // namespace stowage::executor
