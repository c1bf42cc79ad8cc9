#include "gui/widgets/plan_tree_view.h"

#include <QAbstractItemModelTester>
#include <QAbstractItemView>
#include <QComboBox>
#include <QTreeView>
#include <algorithm>

#include "gui/model/name_search.h"
#include "tests/gui/workbench.h"
#include "tests/support/micro_trace.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

using simulator::Decision;

class PlanTreeViewTest : public Workbench {
 protected:
  void select(std::initializer_list<std::int32_t> rows) {
    QItemSelectionModel& selection = *view_.tree().selectionModel();
    selection.clear();
    for (const std::int32_t row : rows) {
      selection.setCurrentIndex(view_.view_index(row),
                                QItemSelectionModel::Select | QItemSelectionModel::Rows);
    }
  }
  std::int32_t row_of(const std::string& layer) {
    const PlanTree& tree = *view_.model().tree();
    for (std::size_t i = 0; i < tree.rows.size(); ++i) {
      if (tree.rows[i].kind == PlanRowKind::layer &&
          tree.trace().string(tree.trace().layers.name[tree.rows[i].layer.index()]) == layer) {
        return static_cast<std::int32_t>(i);
      }
    }
    return -1;
  }
  std::vector<std::int32_t> state_rows() {
    std::vector<std::int32_t> found;
    const PlanTree& tree = *view_.model().tree();
    for (std::size_t i = 0; i < tree.rows.size(); ++i) {
      if (tree.rows[i].kind == PlanRowKind::optimizer_state) {
        found.push_back(static_cast<std::int32_t>(i));
      }
    }
    return found;
  }
  QString decision(std::int32_t row) {
    return view_.view_index(row, PlanTreeModel::decision_column).data().toString();
  }
  std::int64_t offloaded() {
    const auto& saved = document_.current()->decisions->saved;
    return std::count_if(saved.begin(), saved.end(),
                         [](const auto& at) { return at.decision == Decision::offload; });
  }

  PlanTreeView view_{document_, state_, explanations_};
};

TEST_F(PlanTreeViewTest, WithoutATraceItSaysWhatToDo) {
  EXPECT_FALSE(view_.tree().isVisibleTo(&view_));
  open(stowage::testing::small_trace());
  EXPECT_TRUE(view_.tree().isVisibleTo(&view_));
  EXPECT_EQ(view_.summary(), "0 of 3 saved tensors offload");
}

TEST_F(PlanTreeViewTest, TheModelKeepsItsPromisesWhileAPlanIsEdited) {
  const QAbstractItemModelTester tester(&view_.model(),
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  open(stowage::testing::small_trace());
  view_.tree().expandAll();
  select({row_of("layers.1")});
  EXPECT_TRUE(view_.apply(u'O', PlanRowKind::saved));
  settle();
  view_.filter().setText("layers.1");
  document_.close();
  EXPECT_EQ(view_.model().rowCount({}), 0);
}

TEST_F(PlanTreeViewTest, OOffloadsALayerAndKKeepsItAgainAtOnce) {
  open(stowage::testing::small_trace());
  show(view_, 700, 400);
  select({row_of("layers.1")});
  QTest::keyClick(&view_.tree(), Qt::Key_O);
  EXPECT_TRUE(decision(row_of("layers.1")).endsWith("offload")) << "shown before it is replayed";
  settle();
  EXPECT_EQ(offloaded(), 1);
  EXPECT_LT(document_.current()->result.peak_requested, stowage::testing::small_trace_peak(3));
  QTest::keyClick(&view_.tree(), Qt::Key_K);
  settle();
  EXPECT_EQ(offloaded(), 0);
  EXPECT_TRUE(decision(row_of("layers.1")).endsWith("keep"));
}

TEST_F(PlanTreeViewTest, ALayerOfBothKindsIsMixedAndSaysHowMany) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 600);
  const std::int32_t layer = row_of("layers.2.mlp");
  ASSERT_GE(layer, 0);
  const PlanTree& tree = *view_.model().tree();
  std::int32_t movable = -1;
  for (const std::int32_t child : tree.rows[static_cast<std::size_t>(layer)].children) {
    const PlanRow& row = tree.rows[static_cast<std::size_t>(child)];
    if (row.kind == PlanRowKind::saved && tree.can_move(row.saved)) movable = child;
  }
  ASSERT_GE(movable, 0);
  select({movable});
  QTest::keyClick(&view_.tree(), Qt::Key_O);
  settle();
  EXPECT_TRUE(decision(layer).contains("mixed: 1 of ")) << decision(layer).toStdString();
  EXPECT_TRUE(decision(row_of("layers.2")).contains("mixed"));
  view_.tree().expandToDepth(1);
  picture(view_, "plan_tree");
  view_.setPalette(dark());
  picture(view_, "plan_tree_dark");
}

TEST_F(PlanTreeViewTest, SeveralRowsAreDecidedAsOneUndoStep) {
  open(stowage::testing::small_trace());
  show(view_, 700, 400);
  select({row_of("layers.0"), row_of("layers.1"), row_of("layers.2")});
  QTest::keyClick(&view_.tree(), Qt::Key_O);
  settle();
  EXPECT_EQ(offloaded(), 3);
  EXPECT_EQ(document_.undo_stack().count(), 1);
  document_.undo_stack().undo();
  settle();
  EXPECT_EQ(offloaded(), 0);
  // What changes nothing is no step.
  QTest::keyClick(&view_.tree(), Qt::Key_K);
  EXPECT_EQ(document_.undo_stack().count(), 1);
  EXPECT_FALSE(document_.simulating().busy());
}

TEST_F(PlanTreeViewTest, ShiftOStreamsTheParametersOfALayer) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 600);
  select({row_of("layers.2")});
  QTest::keyClick(&view_.tree(), Qt::Key_O, Qt::ShiftModifier);
  settle();
  const auto layers = streaming_layers_of(document_.trace()->trace);
  const auto streaming = std::count_if(layers.begin(), layers.end(), [&](const auto& layer) {
    return streams(*document_.current()->decisions, layer);
  });
  EXPECT_GE(streaming, 1);
  EXPECT_LT(streaming, static_cast<std::ptrdiff_t>(layers.size()));
  EXPECT_EQ(offloaded(), 0);
}

TEST_F(PlanTreeViewTest, OStreamsTheOptimizerStateOfItsRowsAndCtrlShiftOThatOfALayer) {
  open(sample("gpt2-l2-adamw-bf16-h100"));
  show(view_, 900, 600);
  const std::vector<std::int32_t> rows = state_rows();
  ASSERT_EQ(rows.size(), 6U);
  const auto text = [&] {
    QStringList texts;
    for (const std::int32_t row : rows) texts.append(decision(row).mid(2));
    return texts.join(' ').toStdString();
  };
  EXPECT_EQ(text(), "stay stay stay stay stay stay");
  select({rows[1]});
  QTest::keyClick(&view_.tree(), Qt::Key_O);
  EXPECT_EQ(text(), "stay stream stay stay stay stay") << "shown before it is replayed";
  settle();
  select({rows[0], rows[1], rows[2]});
  QTest::keyClick(&view_.tree(), Qt::Key_O);
  settle();
  EXPECT_EQ(text(), "stream stream stream stay stay stay");
  EXPECT_EQ(document_.undo_stack().count(), 2);
  select({rows[1]});
  QTest::keyClick(&view_.tree(), Qt::Key_K);
  settle();
  EXPECT_EQ(text(), "stream stay stream stay stay stay");
  for (int i = 0; i < 3; ++i) document_.undo_stack().undo();
  settle();
  EXPECT_EQ(text(), "stay stay stay stay stay stay");

  select({row_of("layers.1")});
  QTest::keyClick(&view_.tree(), Qt::Key_O, Qt::ControlModifier | Qt::ShiftModifier);
  settle();
  EXPECT_EQ(text(), "stay stay stay stream stream stay");
  EXPECT_TRUE(document_.current()->decisions->parameters.stream.off());
  EXPECT_EQ(offloaded(), 0);
  view_.filter().setText("optimizer stream");
  EXPECT_TRUE(view_.view_index(rows[3]).isValid());
  EXPECT_FALSE(view_.view_index(rows[0]).isValid());
  view_.filter().clear();
  view_.tree().expandAll();
  picture(view_, "plan_tree_optimizer_state");
}

TEST_F(PlanTreeViewTest, RowsOfSeveralKindsAreOneUndoStep) {
  open(sample("gpt2-l2-adamw-bf16-h100"));
  const PlanTree& tree = *view_.model().tree();
  std::int32_t parameters = -1;
  for (std::size_t i = 0; i < tree.rows.size() && parameters < 0; ++i) {
    if (tree.rows[i].kind == PlanRowKind::parameters) parameters = static_cast<std::int32_t>(i);
  }
  select({parameters, state_rows()[2]});
  EXPECT_TRUE(view_.apply(u'O', PlanRowKind::saved));
  settle();
  EXPECT_EQ(decision(parameters).mid(2), "stream");
  EXPECT_EQ(decision(state_rows()[2]).mid(2), "stream");
  ASSERT_EQ(document_.undo_stack().count(), 1);
  document_.undo_stack().undo();
  settle();
  EXPECT_EQ(decision(parameters).mid(2), "stay");
  EXPECT_EQ(decision(state_rows()[2]).mid(2), "stay");
}

TEST_F(PlanTreeViewTest, ReturnOnOptimizerStateListsWhatCanBeDecidedAboutIt) {
  open(sample("gpt2-l2-adamw-bf16-h100"));
  show(view_, 900, 600);
  view_.tree().expandAll();
  const std::int32_t row = state_rows().front();
  select({row});
  view_.tree().setFocus();
  QTest::keyClick(&view_.tree(), Qt::Key_Return);
  auto* list = view_.tree().viewport()->findChild<QComboBox*>();
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->count(), 3);
  EXPECT_EQ(list->currentData().toString(), "stay_state");
  ASSERT_TRUE(stowage::testing::spin_until([&] { return list->view()->isVisible(); }));
  QTest::keyClick(list->view(), Qt::Key_Down);
  QTest::keyClick(list->view(), Qt::Key_Return);
  settle();
  EXPECT_EQ(decision(row).mid(2), "stream");
  EXPECT_EQ(state_.selection().kind, Selection::Kind::storage);
  // And its key, on the layer that it is in.
  select({view_.model().tree()->rows[static_cast<std::size_t>(row)].parent});
  QTest::keyClick(&view_.tree(), Qt::Key_H, Qt::ControlModifier | Qt::ShiftModifier);
  settle();
  EXPECT_EQ(decision(row).mid(2), "host");
  EXPECT_TRUE(view_.summary().contains(" layers updated on the host"))
      << view_.summary().toStdString();
}

TEST_F(PlanTreeViewTest, OptimizerStateThatCannotStreamSaysWhyAndIsLeftOut) {
  stowage::testing::MicroTrace t;
  const StorageId frozen = t.existing(200);
  t.state_of(frozen, 500);
  t.begin_layer("a");
  t.begin_op();
  t.read(frozen);
  t.run(10).end_op();
  t.end_layer("a");
  t.backward();
  open(t.finish());
  ASSERT_EQ(state_rows().size(), 1U);
  const std::int32_t row = state_rows().front();
  EXPECT_TRUE(decision(row).endsWith("stay (cannot stream)")) << decision(row).toStdString();
  const QModelIndex cell = view_.view_index(row, PlanTreeModel::decision_column);
  EXPECT_TRUE(cell.data(Qt::ToolTipRole).toString().endsWith("It stays: the step does not use it."))
      << cell.data(Qt::ToolTipRole).toString().toStdString();
  EXPECT_FALSE(cell.flags().testFlag(Qt::ItemIsEditable));
  select({row});
  EXPECT_FALSE(view_.apply(u'O', PlanRowKind::saved));
  select({row_of("a")});
  EXPECT_FALSE(view_.apply(u'O', PlanRowKind::optimizer_state));
  EXPECT_EQ(document_.undo_stack().count(), 0);
}

TEST_F(PlanTreeViewTest, ReturnOpensTheListOfDecisions) {
  open(stowage::testing::small_trace());
  show(view_, 700, 400);
  select({row_of("layers.1")});
  view_.tree().setFocus();
  QTest::keyClick(&view_.tree(), Qt::Key_Return);
  auto* list = view_.tree().viewport()->findChild<QComboBox*>();
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->count(), 3);
  EXPECT_EQ(list->currentData().toString(), "keep");
  ASSERT_TRUE(stowage::testing::spin_until([&] { return list->view()->isVisible(); }));
  QTest::keyClick(list->view(), Qt::Key_Down);
  EXPECT_EQ(offloaded(), 0) << "not taken yet";
  QTest::keyClick(list->view(), Qt::Key_Return);
  settle();
  EXPECT_EQ(offloaded(), 1);
}

TEST_F(PlanTreeViewTest, AClickSelectsInAllViewsAndTheirSelectionIsShownHere) {
  open(stowage::testing::small_trace());
  show(view_, 700, 400);
  view_.tree().expandAll();
  const PlanTree& tree = *view_.model().tree();
  const QModelIndex saved = view_.view_index(tree.row_of_saved[1]);
  QTest::mouseClick(view_.tree().viewport(), Qt::LeftButton, {},
                    view_.tree().visualRect(saved).center());
  EXPECT_EQ(state_.selection(), (Selection{Selection::Kind::saved, 1}));
  state_.select({Selection::Kind::saved, 2});
  EXPECT_EQ(view_.tree().currentIndex(), view_.view_index(tree.row_of_saved[2]));
  state_.select({Selection::Kind::layer, 1});
  EXPECT_EQ(view_.tree().currentIndex().data().toString(), "layers.0");
}

TEST_F(PlanTreeViewTest, TheMenuOffersEveryKindOfTheTable) {
  open(stowage::testing::small_trace());
  select({row_of("layers.0"), row_of("layers.1")});
  QMenu menu;
  view_.fill_menu(menu);
  QStringList ids;
  for (QAction* action : menu.actions()) {
    if (action->data().isValid()) ids.append(action->data().toString());
  }
  EXPECT_EQ(ids, QStringList({"keep", "offload", "recompute", "stay", "stream", "stay_state",
                              "stream_state", "host_state"}));
  for (QAction* action : menu.actions()) {
    if (action->data().toString() == "offload") action->trigger();
  }
  settle();
  EXPECT_EQ(offloaded(), 2);
}

TEST_F(PlanTreeViewTest, TheFilterFindsByNameAndDecisionAndEscClearsIt) {
  open(stowage::testing::small_trace());
  show(view_, 700, 400);
  select({row_of("layers.2")});
  QTest::keyClick(&view_.tree(), Qt::Key_O);
  settle();
  view_.filter().setFocus();
  QTest::keyClicks(&view_.filter(), "offload LAYERS");
  EXPECT_EQ(view_.tree().model()->rowCount(), 1);
  EXPECT_TRUE(view_.view_index(row_of("layers.2")).isValid());
  QTest::keyClicks(&view_.filter(), "nothing");
  EXPECT_FALSE(view_.tree().isVisibleTo(&view_));
  QTest::keyClick(&view_.filter(), Qt::Key_Escape);
  EXPECT_TRUE(view_.tree().isVisibleTo(&view_));
  EXPECT_GE(view_.tree().model()->rowCount(), 3);
}

TEST_F(PlanTreeViewTest, TheFilterForALayerShowsItsParametersToo) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 600);
  const std::int32_t layer = row_of("layers.4.mlp");
  const PlanTree& tree = *view_.model().tree();
  const std::int32_t parameters = tree.rows[static_cast<std::size_t>(layer)].children.front();
  ASSERT_EQ(tree.rows[static_cast<std::size_t>(parameters)].kind, PlanRowKind::parameters);
  view_.filter().setText("layers.4.mlp");
  EXPECT_TRUE(view_.view_index(parameters).isValid());
  view_.filter().setText("layers.5.mlp");
  EXPECT_FALSE(view_.view_index(parameters).isValid());
}

TEST_F(PlanTreeViewTest, ALayerThatStreamsSaysSoAndTheFooterCountsIt) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 600);
  const std::int32_t layer = row_of("layers.4.mlp");
  EXPECT_TRUE(decision(layer).endsWith("keep"));
  select({layer});
  QTest::keyClick(&view_.tree(), Qt::Key_O, Qt::ShiftModifier);
  settle();
  EXPECT_EQ(decision(layer), "○ keep; ● parameters stream");
  EXPECT_TRUE(decision(row_of("layers.4")).contains("keep; ● parameters of 1 of "))
      << decision(row_of("layers.4")).toStdString();
  EXPECT_TRUE(decision(row_of("layers.5")).endsWith("keep"));
  const auto layers = view_.model().tree()->streaming.size();
  EXPECT_TRUE(view_.summary().endsWith(
      QString("saved tensors offload · parameters of 1 of %1 layers stream").arg(layers)))
      << view_.summary().toStdString();
}

TEST_F(PlanTreeViewTest, SortingBySizePutsTheLargestFirst) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  view_.tree().sortByColumn(PlanTreeModel::bytes_column, Qt::DescendingOrder);
  const QAbstractItemModel& rows = *view_.tree().model();
  for (int i = 1; i < rows.rowCount(); ++i) {
    EXPECT_GE(rows.index(i - 1, 1).data(PlanTreeModel::sort_role).toLongLong(),
              rows.index(i, 1).data(PlanTreeModel::sort_role).toLongLong());
  }
}

TEST_F(PlanTreeViewTest, AllColumnsFitBesideTheTimelineOfAWindowOf1920Pixels) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  document_.try_policy("torchtune");
  settle();
  show(view_, 636, 400);
  const QTreeView& tree = view_.tree();
  const int last = PlanTreeModel::stall_column;
  EXPECT_LE(tree.columnViewportPosition(last) + tree.columnWidth(last), tree.viewport()->width());
  EXPECT_GE(tree.columnWidth(PlanTreeModel::name_column),
            tree.fontMetrics().horizontalAdvance("layers.8.attn") + 2 * tree.indentation());
  // Figures and decisions are whole; what is cut has an ellipsis, and its tool tip has all of it.
  EXPECT_LE(tree.fontMetrics().horizontalAdvance("◐ mixed: 21 of 29 offload") + 6,
            tree.columnWidth(PlanTreeModel::decision_column));
  const QModelIndex row = view_.view_index(row_of("layers.2"), last);
  EXPECT_LE(tree.fontMetrics().horizontalAdvance(row.data().toString()) + 6,
            tree.columnWidth(last));
}

TEST_F(PlanTreeViewTest, WhatIsOlderThanTheStepAndWhatIsInNoLayerSaySo) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  const PlanTree& tree = *view_.model().tree();
  int older = 0;
  for (std::size_t i = 0; i < tree.trace().saved.size(); ++i) {
    if (tree.can_move(SavedId(i))) continue;
    EXPECT_TRUE(decision(tree.row_of_saved[i]).contains("keep (older than the step)"));
    ++older;
  }
  EXPECT_GT(older, 0);
  EXPECT_EQ(layer_words(tree.trace(), LayerId(0)), "outside of all layers");
  EXPECT_EQ(layer_words(tree.trace(), LayerId()), "outside of all layers");
  EXPECT_EQ(row_of("step") < 0
                ? QString("outside of all layers")
                : view_.view_index(row_of("step"), PlanTreeModel::name_column).data().toString(),
            "outside of all layers");
}

TEST_F(PlanTreeViewTest, TwentyThousandSavedTensorsMakeNoWidgets) {
  stowage::testing::MicroTrace t;
  std::vector<std::pair<StorageId, SavedId>> made;
  for (int layer = 0; layer < 100; ++layer) {
    const std::string path = "layers." + std::to_string(layer);
    t.begin_layer(path);
    for (int i = 0; i < 200; ++i) {
      const StorageId storage = t.alloc(400);
      made.emplace_back(storage, t.pack(storage));
      t.let_go(storage);
    }
    t.end_layer(path);
  }
  t.backward();
  for (auto at = made.rbegin(); at != made.rend(); ++at) {
    t.unpack(at->second);
    t.free(at->first);
  }
  open(t.finish());
  show(view_, 700, 400);
  const auto before = view_.findChildren<QWidget*>().size();
  view_.tree().expandAll();
  view_.tree().selectAll();
  EXPECT_EQ(view_.findChildren<QWidget*>().size(), before);
  EXPECT_EQ(view_.model().tree()->rows.size(), 20'100U);
  QTest::keyClick(&view_.tree(), Qt::Key_O);
  settle();
  EXPECT_EQ(offloaded(), 20'000);
  EXPECT_EQ(view_.summary().left(34), "20,000 of 20,000 saved tensors off");
}

TEST_F(PlanTreeViewTest, NamesHaveRoomAtEveryWidth) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  settle();
  view_.show();
  const int em = view_.fontMetrics().horizontalAdvance(QLatin1Char('m'));
  for (int width = 300; width <= 1200; width += 50) {
    view_.resize(width, 600);
    QApplication::processEvents();
    EXPECT_GE(view_.tree().columnWidth(PlanTreeModel::name_column), 10 * em) << width;
  }
  EXPECT_GT(view_.tree().columnWidth(PlanTreeModel::name_column), 30 * em) << "what is left";
}

}  // namespace
}  // namespace stowage::gui
