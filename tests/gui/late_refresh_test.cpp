#include "gui/widgets/late_refresh.h"

#include <gtest/gtest.h>

#include <QMainWindow>
#include <QTest>

#include "gui/widgets/alive_view.h"
#include "gui/widgets/compare_view.h"
#include "tests/gui/workbench.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

// Counts how often it is made anew.
class Counting : public QWidget {
 public:
  void ask() {
    if (!late_.put_off()) ++made;
  }
  int made = 0;

 private:
  LateRefresh late_{*this, [this] { ask(); }};
};

class LateRefreshTest : public Workbench {
 protected:
  // `view` in the dock behind, another one in front of it.
  void put_behind(QWidget& view) {
    front_.setWidget(new QWidget);
    behind_.setWidget(&view);
    window_.addDockWidget(Qt::RightDockWidgetArea, &behind_);
    window_.addDockWidget(Qt::RightDockWidgetArea, &front_);
    window_.tabifyDockWidget(&behind_, &front_);
    show(window_, 600, 400);
    front_.raise();
    QApplication::processEvents();
  }
  void bring_to_front() {
    behind_.raise();
    QApplication::processEvents();
  }
  ~LateRefreshTest() override { behind_.setWidget(nullptr); }

  QMainWindow window_;
  QDockWidget front_;
  QDockWidget behind_;
};

TEST_F(LateRefreshTest, WhatIsBehindIsMadeOnceWhenItIsShown) {
  Counting view;
  view.ask();
  EXPECT_EQ(view.made, 1) << "it is in no dock";
  put_behind(view);
  view.made = 0;
  for (int i = 0; i < 3; ++i) view.ask();
  EXPECT_EQ(view.made, 0);
  bring_to_front();
  EXPECT_EQ(view.made, 1);
  view.ask();
  EXPECT_EQ(view.made, 2) << "in front, at once";
  front_.raise();
  QApplication::processEvents();
  bring_to_front();
  EXPECT_EQ(view.made, 2) << "nothing was put off";
  behind_.setWidget(nullptr);
}

TEST_F(LateRefreshTest, AViewInFrontOfNobodyInAHiddenWindowIsMade) {
  Counting view;
  put_behind(view);
  window_.hide();
  view.made = 0;
  view.ask();
  EXPECT_EQ(view.made, 1);
  behind_.setWidget(nullptr);
}

TEST_F(LateRefreshTest, ViewsThatWereBehindShowTheEditsMadeMeanwhile) {
  AliveView alive(document_, state_, explanations_);
  put_behind(alive);
  bring_to_front();
  open(stowage::testing::small_trace());
  EXPECT_EQ(alive.bytes(), stowage::testing::small_trace_peak(3));
  front_.raise();
  QApplication::processEvents();
  const Trace& trace = document_.trace()->trace;
  ASSERT_TRUE(
      document_.set_decision(saved_in(trace, trace.saved.layer[0]), simulator::Decision::offload));
  settle();
  EXPECT_EQ(alive.bytes(), stowage::testing::small_trace_peak(3)) << "nobody sees it";
  ASSERT_NE(document_.current()->result.peak_requested, stowage::testing::small_trace_peak(3));
  bring_to_front();
  EXPECT_EQ(alive.bytes(), document_.current()->result.peak_requested);
  front_.raise();
  QApplication::processEvents();
  document_.undo_stack().undo();
  settle();
  bring_to_front();
  EXPECT_EQ(alive.bytes(), stowage::testing::small_trace_peak(3));
  behind_.setWidget(nullptr);
}

TEST_F(LateRefreshTest, TheComparisonIsMadeWhenItsTabIsChosen) {
  CompareView compare(document_, state_);
  put_behind(compare);
  open(stowage::testing::small_trace());
  const Trace& trace = document_.trace()->trace;
  ASSERT_TRUE(
      document_.set_decision(saved_in(trace, trace.saved.layer[0]), simulator::Decision::offload));
  settle();
  EXPECT_FALSE(compare.job().busy());
  EXPECT_TRUE(compare.compared_rows().empty());
  bring_to_front();
  ASSERT_TRUE(stowage::testing::spin_until([&] { return !compare.job().busy(); }));
  EXPECT_FALSE(compare.compared_rows().empty());
  EXPECT_FALSE(compare.curves().empty());
  behind_.setWidget(nullptr);
}

}  // namespace
}  // namespace stowage::gui
