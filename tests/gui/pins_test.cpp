// Decisions that are pinned by hand: the column, the key, the menu, the line in What if, and the
// link in Details.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <algorithm>

#include "gui/model/keep_instead.h"
#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/what_if_panel.h"
#include "planner/budget.h"
#include "tests/gui/workbench.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

class PinsTest : public Workbench {
 protected:
  std::int32_t layer_row(const std::string& name) {
    const PlanTree& tree = *view_.model().tree();
    for (std::size_t i = 0; i < tree.rows.size(); ++i) {
      const PlanRow& row = tree.rows[i];
      if (row.kind == PlanRowKind::layer &&
          tree.trace().string(tree.trace().layers.name[row.layer.index()]) == name) {
        return static_cast<std::int32_t>(i);
      }
    }
    return -1;
  }
  std::int32_t saved_row_of(const std::string& layer) {
    const PlanTree& tree = *view_.model().tree();
    for (const std::int32_t child :
         tree.rows[static_cast<std::size_t>(layer_row(layer))].children) {
      if (tree.rows[static_cast<std::size_t>(child)].kind == PlanRowKind::saved) return child;
    }
    return -1;
  }
  void select(std::int32_t row) {
    view_.tree().selectionModel()->clear();
    view_.tree().setCurrentIndex(view_.view_index(row));
  }
  Qt::CheckState pin_of(std::int32_t row) {
    return static_cast<Qt::CheckState>(
        view_.view_index(row, PlanTreeModel::pin_column).data(Qt::CheckStateRole).toInt());
  }
  QAction* entry(QMenu& menu, const char* name) {
    view_.fill_menu(menu);
    return menu.findChild<QAction*>(QLatin1String(name));
  }

  PlanTreeView view_{document_, state_, explanations_};
  WhatIfPanel panel_{document_};
};

TEST_F(PinsTest, PPinsWhatIsSelectedAndUnpinsIt) {
  const QAbstractItemModelTester tester(&view_.model(),
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  open(stowage::testing::small_trace());
  show(view_, 800, 400);
  view_.tree().expandAll();
  const std::int32_t saved = saved_row_of("layers.1");
  ASSERT_GE(saved, 0);
  EXPECT_EQ(pin_of(saved), Qt::Unchecked);
  select(saved);
  QTest::keyClick(&view_.tree(), Qt::Key_P);
  EXPECT_EQ(pin_of(saved), Qt::Checked);
  EXPECT_EQ(document_.pinned_rows().saved.size(), 1U);
  EXPECT_NE(pin_of(layer_row("layers.1")), Qt::Unchecked) << "the layer says that some is";
  EXPECT_EQ(pin_of(layer_row("layers.0")), Qt::Unchecked);
  EXPECT_TRUE(view_.summary().contains("1 of ")) << view_.summary().toStdString();
  EXPECT_TRUE(view_.summary().contains("decisions pinned"));
  QTest::keyClick(&view_.tree(), Qt::Key_P);
  EXPECT_EQ(pin_of(saved), Qt::Unchecked);
  EXPECT_FALSE(view_.summary().contains("pinned"));
}

TEST_F(PinsTest, ALayerPinsAllThatIsInItAndUndoTakesThatBack) {
  open(stowage::testing::small_trace());
  show(view_, 800, 400);
  const std::int32_t layer = layer_row("layers.1");
  select(layer);
  QTest::keyClick(&view_.tree(), Qt::Key_P);
  EXPECT_EQ(pin_of(layer), Qt::Checked);
  const PlanTreeModel::Share share = view_.model().share_of(layer);
  EXPECT_EQ(share.pinned, share.decisions);
  EXPECT_GE(share.decisions, 1);
  EXPECT_EQ(document_.undo_stack().count(), 1);
  document_.undo_stack().undo();
  EXPECT_EQ(pin_of(layer), Qt::Unchecked);
}

TEST_F(PinsTest, AClickInTheColumnPins) {
  open(stowage::testing::small_trace());
  show(view_, 900, 400);
  view_.tree().expandAll();
  const QModelIndex cell = view_.view_index(saved_row_of("layers.0"), PlanTreeModel::pin_column);
  const QRect at = view_.tree().visualRect(cell);
  ASSERT_TRUE(at.isValid());
  QStyleOptionViewItem option;
  option.initFrom(&view_.tree());
  option.rect = at;
  option.features = QStyleOptionViewItem::HasCheckIndicator;
  const QRect box = view_.tree().style()->subElementRect(QStyle::SE_ItemViewItemCheckIndicator,
                                                         &option, &view_.tree());
  QTest::mouseClick(view_.tree().viewport(), Qt::LeftButton, {}, box.center());
  EXPECT_EQ(pin_of(saved_row_of("layers.0")), Qt::Checked);
  picture(view_, "plan_pins");
}

TEST_F(PinsTest, TheMenuPinsAndUnpinsAll) {
  open(stowage::testing::small_trace());
  show(view_, 800, 400);
  select(saved_row_of("layers.2"));
  {
    QMenu menu;
    QAction* pin = entry(menu, "pin");
    ASSERT_NE(pin, nullptr);
    EXPECT_EQ(pin->text(), "Pin this decision\tP");
    EXPECT_FALSE(entry(menu, "unpin_all")->isEnabled());
    pin->trigger();
  }
  EXPECT_EQ(document_.pinned_rows().size(), 1U);
  select(layer_row("layers.0"));
  QTest::keyClick(&view_.tree(), Qt::Key_P);
  QMenu menu;
  QAction* none = entry(menu, "unpin_all");
  ASSERT_NE(none, nullptr);
  EXPECT_TRUE(none->isEnabled());
  none->trigger();
  EXPECT_TRUE(document_.pinned_rows().empty());
}

TEST_F(PinsTest, WhatIfSaysHowManyAndASearchLeavesThem) {
  open(stowage::testing::small_trace(4));
  show(panel_, 500, 700);
  const auto* label = panel_.findChild<QLabel*>(QStringLiteral("pins"));
  ASSERT_NE(label, nullptr);
  EXPECT_FALSE(label->isVisible());
  select(saved_row_of("layers.0"));
  view_.toggle_pins();
  EXPECT_TRUE(label->isVisible());
  EXPECT_EQ(label->text(), "1 decision is pinned and stays");
  planner::PlanRequest request;
  request.budget = document_.trace()->resident_cached.peak_active * 8 / 10;
  document_.find_plan(std::move(request));
  settle();
  ASSERT_TRUE(document_.outcome() && document_.outcome()->feasible());
  EXPECT_EQ(document_.outcome()->pinned, 1);
  const auto decision = [&](const std::string& layer) {
    return view_.view_index(saved_row_of(layer), PlanTreeModel::decision_column)
        .data()
        .toString()
        .toStdString();
  };
  EXPECT_NE(decision("layers.0").find("keep"), std::string::npos) << decision("layers.0");
  EXPECT_NE(decision("layers.1").find("offload"), std::string::npos) << decision("layers.1");
  EXPECT_EQ(pin_of(saved_row_of("layers.0")), Qt::Checked);
  auto* none = panel_.findChild<QPushButton*>(QStringLiteral("unpin_all"));
  ASSERT_NE(none, nullptr);
  QTest::mouseClick(none, Qt::LeftButton);
  EXPECT_TRUE(document_.pinned_rows().empty());
  EXPECT_FALSE(label->isVisible());
}

TEST_F(PinsTest, WhatIsKeptInsteadOfCopiedIsPinnedInTheSameStep) {
  open(stowage::testing::small_trace(4));
  select(layer_row("layers.1"));
  ASSERT_TRUE(view_.apply(u'O', PlanRowKind::saved));
  settle();
  const KeepInstead what = keep_instead(*explanations_.current(), {Selection::Kind::transfer, 0});
  ASSERT_FALSE(what.saved.empty());
  EXPECT_TRUE(keep(document_, what));
  settle();
  EXPECT_EQ(document_.pinned_rows().saved, std::set<SavedId>(what.saved.begin(), what.saved.end()));
  EXPECT_EQ(document_.undo_stack().count(), 2);
  document_.undo_stack().undo();
  settle();
  EXPECT_TRUE(document_.pinned_rows().empty());
  EXPECT_TRUE(
      document_.current()->decisions->saved_is(what.saved.front(), simulator::Decision::offload));
}

}  // namespace
}  // namespace stowage::gui
