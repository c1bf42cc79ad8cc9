// A range that is dragged over the lanes, and the table of what runs in it.
#include "gui/widgets/range_view.h"

#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

class RangeViewTest : public testing::Hands {
 protected:
  RangeView& range() { return *qobject_cast<RangeView*>(window_.view(QStringLiteral("range"))); }
  QTreeWidgetItem& row(int i) { return *range().rows().topLevelItem(i); }
};

TEST_F(RangeViewTest, ADragOverTheLanesListsWhatRunsThere) {
  open(testing::kLlama);
  window_.document().try_policy("torchtune");
  window_.settle();
  drag(timeline(), at(timeline(), 0.6, 0.5), at(timeline(), 0.7, 0.5));
  window_.settle();
  ASSERT_TRUE(state().range().has_value());
  EXPECT_TRUE(in_front(range()));
  ASSERT_EQ(range().reason(), "");
  const WorkTable ops = range().table();
  ASSERT_GT(ops.rows.size(), 3U);
  EXPECT_GT(ops.time, 0);
  EXPECT_LT(ops.time, state().range()->duration()) << "torchtune's copies are waited for";
  // The largest first, all of it last.
  EXPECT_EQ(row(0).text(0).toStdString(), ops.rows[0].name);
  const int last = range().rows().topLevelItemCount() - 1;
  EXPECT_EQ(last, static_cast<int>(ops.rows.size()));
  EXPECT_EQ(row(last).text(0), "all of it");
  EXPECT_EQ(row(last).text(3), "100.0 %");
  range().rows().setCurrentItem(&row(0));
  QTest::keyClick(&range().rows(), Qt::Key_Return);
  EXPECT_EQ(state().selection(), ops.rows[0].longest);
  choose(range().grouping(), "by kernel");
  EXPECT_EQ(range().table().time, ops.time);
  EXPECT_GT(range().table().count, ops.count);
  // A click on the header turns the order; the sum stays at the end.
  range().rows().sortByColumn(2, Qt::AscendingOrder);
  EXPECT_EQ(row(range().rows().topLevelItemCount() - 1).text(0), "all of it");
  // Esc in the lanes forgets the range: the table is of the whole step.
  key(Qt::Key_Escape);
  EXPECT_FALSE(state().range().has_value());
  EXPECT_TRUE(range().title().startsWith("the whole planned step, predicted: "))
      << range().title().toStdString();
  EXPECT_GT(range().table().time, ops.time);
}

TEST_F(RangeViewTest, OnACpuThereAreOpsAndNoKernels) {
  open(testing::kSmallCpu);
  tab("Range");
  ASSERT_EQ(range().reason(), "");
  EXPECT_TRUE(range().title().startsWith("the whole recorded step, measured: "))
      << range().title().toStdString();
  const Trace& trace = window_.document().trace()->trace;
  EXPECT_LE(range().table().time, trace.events.time.back());
  choose(range().grouping(), "by kernel");
  EXPECT_TRUE(range().reason().contains("no kernels")) << range().reason().toStdString();
}

}  // namespace
}  // namespace stowage::gui
