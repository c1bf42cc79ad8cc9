#include "gui/widgets/alive_view.h"

#include <QHeaderView>
#include <QRegularExpression>

#include "report/inspect.h"
#include "tests/gui/workbench.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

class AliveViewTest : public Workbench {
 protected:
  AliveView view_{document_, state_, explanations_};
};

TEST_F(AliveViewTest, AtThePeakItListsThePeaksBytesHoweverTheyAreGrouped) {
  EXPECT_TRUE(view_.reason().contains("No trace is open"));
  open(stowage::testing::small_trace());
  for (int grouping = 0; grouping < 3; ++grouping) {
    view_.grouping().setCurrentIndex(grouping);
    EXPECT_EQ(view_.bytes(), stowage::testing::small_trace_peak(3));
    EXPECT_GT(view_.rows().topLevelItemCount(), 0);
  }
}

TEST_F(AliveViewTest, ItFollowsTheCursorWhenAskedTo) {
  open(stowage::testing::small_trace());
  view_.show_cursor();
  EXPECT_TRUE(view_.reason().contains("no cursor"));
  state_.set_cursor(0);
  EXPECT_EQ(view_.reason(), "");
  EXPECT_LT(view_.bytes(), stowage::testing::small_trace_peak(3));
  EXPECT_GT(view_.bytes(), 0);
  view_.show_peak();
  EXPECT_EQ(view_.bytes(), stowage::testing::small_trace_peak(3));
}

TEST_F(AliveViewTest, ADoubleClickAndReturnSelect) {
  open(stowage::testing::small_trace());
  show(view_, 700, 400);
  QTreeWidget& rows = view_.rows();
  QTreeWidgetItem* saved = nullptr;
  for (int i = 0; i < rows.topLevelItemCount(); ++i) {
    if (rows.topLevelItem(i)->text(0) == "layers.1#0") saved = rows.topLevelItem(i);
  }
  ASSERT_NE(saved, nullptr);
  const QPoint at = rows.visualItemRect(saved).center();
  QTest::mouseClick(rows.viewport(), Qt::LeftButton, {}, at);
  QTest::mouseDClick(rows.viewport(), Qt::LeftButton, {}, at);
  EXPECT_EQ(state_.selection(), (Selection{Selection::Kind::saved, 1}));
  state_.clear();
  QTest::keyClick(&rows, Qt::Key_Return);
  EXPECT_EQ(state_.selection(), (Selection{Selection::Kind::saved, 1}));
}

// The logits and their gradient, 8 x 1024 x 128,256 x 4 bytes each, are held to the end of the
// step.
TEST_F(AliveViewTest, WhatIsDeadAtThePeakIsNamed) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 760, 480);
  const auto* use = view_.findChild<QLabel*>("use");
  EXPECT_EQ(use->text(),
            "63.0 GB: 8.41 GB dead, 35.0 GB saved and idle, 15.1 GB idle, 4.43 GB needed");
  document_.try_policy("save_on_cpu");
  settle();
  const QRegularExpression less(QStringLiteral(
      "^[0-9.]+ GB: .*; [0-9.]+ GB less than without a plan cost [0-9.]+ s \\(\\+[0-9.]+ %\\)$"));
  EXPECT_TRUE(less.match(use->text()).hasMatch()) << use->text().toStdString();
  view_.show_cursor();
  state_.set_cursor(0);
  settle();
  EXPECT_FALSE(use->text().contains(" less ")) << "of the cursor's moment";
  document_.try_policy("resident");
  view_.show_peak();
  settle();
  QTreeWidget& rows = view_.rows();
  EXPECT_TRUE(rows.topLevelItem(0)->text(4).startsWith("dead since "))
      << rows.topLevelItem(0)->text(4).toStdString();
  EXPECT_TRUE(rows.topLevelItem(1)->text(4).startsWith("dead since "));
  int saved = 0;
  for (int i = 0; i < rows.topLevelItemCount(); ++i) {
    saved += rows.topLevelItem(i)->text(4).startsWith("saved and idle until ") ? 1 : 0;
  }
  EXPECT_GT(saved, 90);
  view_.findChildren<QComboBox*>().at(1)->setCurrentText("by use");
  ASSERT_EQ(rows.topLevelItemCount(), 4);
  EXPECT_EQ(rows.topLevelItem(0)->text(0), "dead");
  EXPECT_EQ(rows.topLevelItem(0)->text(1), "8.41 GB");
  picture(view_, "alive_by_use");
  // What a plan moves away is not saved and idle any more; what is dead stays.
  const Trace& trace = document_.trace()->trace;
  std::vector<SavedId> all;
  for (std::size_t i = 0; i < trace.saved.size(); ++i) all.emplace_back(i);
  ASSERT_TRUE(document_.set_decision(all, simulator::Decision::offload));
  settle();
  EXPECT_EQ(rows.topLevelItem(0)->text(1), "8.41 GB");
  EXPECT_FALSE(use->text().contains("35.0 GB saved")) << use->text().toStdString();
}

// The logits are 8 x 1024 x 128,256 floats, made by the head's matrix product.
TEST_F(AliveViewTest, AStorageHasItsShapeItsMakerAndItsLifetimeAndAHeaderSortsByThem) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 1200, 480);
  QTreeWidget& rows = view_.rows();
  const QTreeWidgetItem& logits = *rows.topLevelItem(0);
  EXPECT_EQ(logits.text(1), "4.20 GB");
  EXPECT_TRUE(logits.text(5).endsWith("128256]")) << logits.text(5).toStdString();
  EXPECT_EQ(logits.text(6), "float32");
  EXPECT_TRUE(logits.text(7).contains("mm")) << logits.text(7).toStdString();
  EXPECT_TRUE(logits.text(8).endsWith(" ms")) << logits.text(8).toStdString();
  const auto sort_by = [&](int column) {
    QHeaderView& header = *rows.header();
    const QPoint at(header.sectionViewportPosition(column) + 12, header.height() / 2);
    QTest::mouseClick(header.viewport(), Qt::LeftButton, {}, at);
  };
  sort_by(1);
  const bool up = rows.header()->sortIndicatorOrder() == Qt::AscendingOrder;
  const int last = rows.topLevelItemCount() - 1;
  EXPECT_TRUE(rows.topLevelItem(up ? last : 0)->text(1).endsWith("GB"))
      << "4.20 GB is more than 999 MB";
  sort_by(8);
  sort_by(8);
  EXPECT_EQ(rows.topLevelItem(last)->text(8), "before the step");
  EXPECT_NE(rows.topLevelItem(0)->text(8), "before the step");
  // Dies: the logits in the step, a parameter is there behind it.
  EXPECT_EQ(rows.topLevelItem(last)->text(9), "outlives the step");
  sort_by(9);
  EXPECT_EQ(rows.topLevelItem(last)->text(9), "outlives the step");
  EXPECT_TRUE(rows.topLevelItem(0)->text(9).endsWith("s"))
      << rows.topLevelItem(0)->text(9).toStdString();
  EXPECT_NE(rows.topLevelItem(0)->text(9), "outlives the step");
  sort_by(9);
  EXPECT_EQ(rows.topLevelItem(0)->text(9), "outlives the step");
  sort_by(8);
  sort_by(8);
  picture(view_, "alive_sorted");
  // A sort stays with another moment.
  state_.set_cursor(0);
  view_.show_cursor();
  EXPECT_EQ(rows.header()->sortIndicatorSection(), 8);
  // Without a column, as behind a third click, the largest is the first one again.
  rows.header()->setSortIndicator(1, Qt::AscendingOrder);
  EXPECT_NE(rows.topLevelItem(0)->text(1), "2.10 GB");
  rows.header()->setSortIndicator(-1, Qt::AscendingOrder);
  QCoreApplication::processEvents();
  EXPECT_EQ(rows.topLevelItem(0)->text(1), "2.10 GB");
}

// Launches of this step are through after 0.1 of its 2.57 s; what `inspect` says goes by the
// device's time.
TEST_F(AliveViewTest, UsesOfARecordedStepGoByTheDevicesTime) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  state_.set_shown(Shown::recorded);
  show(view_, 760, 480);
  EXPECT_EQ(view_.findChild<QLabel*>("use")->text().toStdString(),
            report::use_headline(report::use_at_peak(document_.trace()->trace)));
  EXPECT_TRUE(view_.title().contains("of launch time")) << view_.title().toStdString();
  // The logits are dead once forward is over, most of a second into the step.
  const QString use = view_.rows().topLevelItem(0)->text(4);
  EXPECT_TRUE(use.startsWith("dead since 8") && use.endsWith(" ms")) << use.toStdString();
}

TEST_F(AliveViewTest, TheMomentOfARecordedStepIsSaidOnBothClocks) {
  open(sample("vit-fp32-h200"));
  state_.set_shown(Shown::recorded);
  settle();
  const QRegularExpression moment(
      QStringLiteral(" at ([0-9.]+ m?s) of launch time \\(([0-9.]+ m?s) on the device\\)"));
  const auto found = moment.match(view_.title());
  ASSERT_TRUE(found.hasMatch()) << view_.title().toStdString();
  EXPECT_NE(found.captured(1), found.captured(2));
}

TEST_F(AliveViewTest, APlanTakesItsRowsAway) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  const Bytes before = view_.bytes();
  const Trace& trace = document_.trace()->trace;
  ASSERT_TRUE(document_.set_decision(saved_in(trace, trace.saved.layer[200]),
                                     simulator::Decision::offload));
  settle();
  EXPECT_LT(view_.bytes(), before);
  EXPECT_EQ(view_.bytes(), document_.current()->result.peak_requested);
  show(view_, 760, 480);
  picture(view_, "alive");
}

}  // namespace
}  // namespace stowage::gui
