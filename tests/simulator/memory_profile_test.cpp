#include "simulator/lowering/memory_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stowage::simulator {
namespace {

TEST(MemoryProfile, EqualsAnArrayOnEverySubRange) {
  std::mt19937_64 random(3);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (const std::size_t size : {1u, 2u, 3u, 8u, 13u, 31u}) {
    std::vector<Bytes> plain(size);
    for (Bytes& b : plain) b = static_cast<Bytes>(below(100));
    MemoryProfile profile(plain);
    for (int round = 0; round < 30; ++round) {
      const std::size_t from = below(size + 1);
      const std::size_t to = from + below(size - from + 1);
      const Bytes bytes = static_cast<Bytes>(below(200)) - 100;
      profile.add(from, to, bytes);
      for (std::size_t i = from; i < to; ++i) plain[i] += bytes;
      for (std::size_t first = 0; first <= size; ++first) {
        for (std::size_t last = first + 1; last <= size; ++last) {
          const auto begin = plain.begin() + static_cast<long>(first);
          const auto end = plain.begin() + static_cast<long>(last);
          ASSERT_EQ(profile.max(first, last), *std::max_element(begin, end));
          const Bytes limit = static_cast<Bytes>(below(150));
          std::size_t expected = last;
          for (std::size_t i = first; i < last; ++i) {
            if (plain[i] > limit) expected = i;
          }
          ASSERT_EQ(profile.last_above(first, last, limit), expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stowage::simulator
