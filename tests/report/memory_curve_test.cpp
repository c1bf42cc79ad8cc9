#include "report/memory_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stowage {
namespace {

using ::testing::ElementsAre;

// 100 bytes from 0 to 5, 300 at 5 for no time at all, 200 from 5 to 10.
const report::MemoryCurve kCurve = {{0, 5, 5}, {100, 300, 200}, 10};

TEST(MemoryCurve, AColumnShowsTheMaximumOfItsSpan) {
  EXPECT_THAT(report::column_maxima(kCurve, 2), ElementsAre(100, 300));
  EXPECT_THAT(report::column_maxima(kCurve, 1), ElementsAre(300));
  EXPECT_THAT(report::column_maxima(kCurve, 4), ElementsAre(100, 100, 300, 200));
}

TEST(MemoryCurve, APeakOfNoDurationIsStillSeen) {
  const auto maxima = report::column_maxima({{0, 999, 999, 1000}, {1, 50, 1, 1}, 100000}, 40);
  EXPECT_EQ(*std::max_element(maxima.begin(), maxima.end()), 50);
}

}  // namespace
}  // namespace stowage
