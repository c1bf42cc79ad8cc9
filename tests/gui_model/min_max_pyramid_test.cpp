#include "gui/model/min_max_pyramid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stowage::gui {
namespace {

TEST(MinMaxPyramid, GivesTheExtentOfEveryRange) {
  std::mt19937 random(1);
  for (const std::size_t size : {1U, 2U, 15U, 16U, 17U, 255U, 257U, 5000U}) {
    std::uniform_int_distribution<Bytes> value(-50, 50);
    std::vector<Bytes> values(size);
    for (Bytes& v : values) v = value(random);
    const MinMaxPyramid pyramid(values);
    std::uniform_int_distribution<std::size_t> place(0, size);
    for (int i = 0; i < 400; ++i) {
      std::size_t a = place(random);
      std::size_t b = place(random);
      if (a > b) std::swap(a, b);
      if (a == b) continue;
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(a);
      const auto last = values.begin() + static_cast<std::ptrdiff_t>(b);
      const MinMaxPyramid::Extent extent = pyramid.extent(a, b);
      EXPECT_EQ(extent.min, *std::min_element(first, last));
      EXPECT_EQ(extent.max, *std::max_element(first, last));
      EXPECT_EQ(extent.max_at,
                static_cast<std::size_t>(std::max_element(first, last) - values.begin()));
    }
  }
}

TEST(MinMaxPyramid, NeverLosesASpikeOfOneSample) {
  std::vector<Bytes> values(1'000'000, 1000);
  std::mt19937 random(2);
  std::uniform_int_distribution<std::size_t> place(0, values.size() - 1);
  for (int i = 0; i < 20; ++i) {
    const std::size_t at = place(random);
    values[at] = 5000;
    const MinMaxPyramid pyramid(values);
    const MinMaxPyramid::Extent extent = pyramid.extent(0, values.size());
    EXPECT_EQ(extent.max, 5000);
    EXPECT_EQ(extent.max_at, at);
    values[at] = 1000;
  }
}

TEST(MinMaxPyramid, CanBeEmpty) {
  EXPECT_EQ(MinMaxPyramid().size(), 0U);
  EXPECT_EQ(MinMaxPyramid(std::vector<Bytes>{}).size(), 0U);
}

}  // namespace
}  // namespace stowage::gui
