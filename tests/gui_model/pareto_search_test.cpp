#include "gui/model/pareto_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gui/model/scatter_scale.h"
#include "simulator/machine/calibration_settings.h"
#include "tests/gui_model/spin.h"
#include "tests/support/small_trace.h"

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

// One who hears of another machine ahead of the search loads a plan of the machine before.
TEST(ParetoSearch, ABoundIsOfTheMachineThatItWasSearchedOn) {
  PlanDocument document;
  ParetoSearch* search = nullptr;
  bool loaded = false;
  const auto row = [&] {
    for (std::size_t i = 0; i < search->points().size(); ++i) {
      if (search->points()[i].plan.lower_bound_step) return i;
    }
    return search->points().size();
  };
  QObject::connect(&document, &PlanDocument::changed, [&] {
    if (search != nullptr && document.is_assumed() && !loaded) loaded = search->load(row());
  });
  const auto settle = [&] {
    ASSERT_TRUE(testing::spin_until([&] {
      return !document.loading().busy() && !document.simulating().busy() &&
             (search == nullptr || !search->busy());
    }));
  };
  document.open_trace(testing::small_trace(), QStringLiteral("small"));
  settle();
  ParetoSearch made(document);
  search = &made;
  made.start(5);
  settle();
  ASSERT_LT(row(), made.points().size());
  Calibration slower = document.trace()->trace.calibration;
  ASSERT_TRUE(simulator::apply_setting(slower, "link.h2d_gbps", 1));
  document.set_calibration(slower);
  settle();
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(document.current()->plan().lower_bound_step.has_value());
  EXPECT_EQ(lower_bound_of(*document.current()), std::nullopt) << "proved of another machine";
  document.restore_calibration();
  settle();
  EXPECT_EQ(lower_bound_of(*document.current()), document.current()->plan().lower_bound_step);
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
