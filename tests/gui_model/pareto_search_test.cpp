#include "gui/model/pareto_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gui/model/scatter_scale.h"

namespace stowage::gui {
namespace {

ParetoPoint point(Bytes peak, Nanoseconds step) {
  ParetoPoint made;
  made.peak = peak;
  made.step = step;
  return made;
}

TEST(ParetoSearch, APointIsBestWhenNoOtherIsSmallerAndAsFast) {
  std::vector<ParetoPoint> points{point(30, 5), point(10, 9), point(20, 9), point(20, 7),
                                  point(40, 5)};
  mark_best(points);
  std::vector<std::pair<Bytes, bool>> seen;
  for (const ParetoPoint& at : points) seen.emplace_back(at.peak, at.best);
  EXPECT_EQ(seen, (std::vector<std::pair<Bytes, bool>>{
                      {10, true}, {20, true}, {20, false}, {30, true}, {40, false}}));
}

TEST(ParetoSearch, BudgetsCoverTheRangeAndTheFirstOnesAreSpread) {
  const std::vector<Bytes> budgets = spread_budgets(100, 500, 5);
  EXPECT_EQ(budgets, (std::vector<Bytes>{100, 500, 300, 200, 400}));
  for (int count = 2; count < 40; ++count) {
    std::vector<Bytes> all = spread_budgets(0, 1000, count);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(count));
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  }
  EXPECT_TRUE(spread_budgets(500, 500, 5).empty());
}

TEST(ScatterScale, MapsToThePlotAndCutsWhatIsTooSlow) {
  const ScatterScale scale{QRectF(10, 20, 100, 50), 0, 1000, 0, 10};
  EXPECT_EQ(scale.at(0, 0), QPointF(10, 70));
  EXPECT_EQ(scale.at(1000, 10), QPointF(110, 20));
  EXPECT_EQ(scale.at(500, 99), QPointF(60, 20));
  EXPECT_TRUE(scale.is_cut(11));
  EXPECT_FALSE(scale.is_cut(10));
}

TEST(ScatterScale, TheNearestPointWithinReachIsHit) {
  const std::vector<QPointF> points{{0, 0}, {10, 0}, {13, 0}};
  EXPECT_EQ(ScatterScale::nearest(points, {11, 0}, 5), 1);
  EXPECT_EQ(ScatterScale::nearest(points, {12.5, 0}, 5), 2);
  EXPECT_EQ(ScatterScale::nearest(points, {40, 0}, 5), -1);
}

}  // namespace
}  // namespace stowage::gui
