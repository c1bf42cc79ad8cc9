// Which clock the memory curve's axis is of.
#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

class ClockWords : public testing::WindowTest {};

TEST_F(ClockWords, ARecordedStepOfAGpuIsOnLaunchTimeAndSaysSo) {
  open(testing::kVit);
  EXPECT_EQ(memory().clock_words(), "device time");
  const QImage planned = memory().grab().toImage();
  EXPECT_FALSE(memory().describe(memory().curve_rect().center()).contains("launch time"));
  state().set_shown(Shown::recorded);
  window_.settle();
  EXPECT_EQ(memory().clock_words(), "launch time");
  EXPECT_TRUE(memory().describe(memory().curve_rect().center()).contains(" of launch time"));
  // It stands beside the labels of the time axis.
  const QImage recorded = memory().grab().toImage();
  const QRect beside(2, memory().curve_rect().bottom() + 2, memory().plot().left() - 6,
                     memory().height() - memory().curve_rect().bottom() - 4);
  EXPECT_NE(planned.copy(beside), recorded.copy(beside));
}

// The curve of a recorded step is not that of the plan, and neither is what its budget comes to.
TEST_F(ClockWords, ARecordedStepKeepsABudgetOrNotByItsOwnPeak) {
  open(testing::kVit);
  planner::PlanRequest request;
  request.budget = 7'000'000'000;
  request.budget_on = simulator::PeakKind::reserved;
  request.placement = simulator::PlacementMode::planned;
  window_.document().find_plan(std::move(request));
  window_.settle();
  EXPECT_TRUE(memory().labels().budget.text.endsWith(": kept"));
  state().set_shown(Shown::recorded);
  window_.settle();
  EXPECT_TRUE(memory().labels().budget.text.endsWith(": not kept"))
      << memory().labels().budget.text.toStdString();
}

TEST_F(ClockWords, OnACpuThereIsButOne) {
  open(testing::kSmallCpu);
  EXPECT_EQ(memory().clock_words(), "");
  state().set_shown(Shown::recorded);
  window_.settle();
  EXPECT_EQ(memory().clock_words(), "");
}

}  // namespace
}  // namespace stowage::gui
