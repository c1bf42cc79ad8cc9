#include "planner/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace stowage::planner {
namespace {

TEST(InParallel, CallsEachOnce) {
  for (const std::size_t count : {0U, 1U, 3U, 1000U}) {
    std::vector<std::atomic<int>> calls(count);
    in_parallel(count, [&](std::size_t i) { ++calls[i]; });
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i << " of " << count;
  }
}

TEST(InParallel, ThrowsBehindTheOthers) {
  std::vector<std::atomic<int>> calls(50);
  EXPECT_THROW(in_parallel(50,
                           [&](std::size_t i) {
                             ++calls[i];
                             if (i == 7) throw std::runtime_error("seven");
                           }),
               std::runtime_error);
  for (const std::atomic<int>& each : calls) EXPECT_EQ(each, 1);
}

}  // namespace
}  // namespace stowage::planner
