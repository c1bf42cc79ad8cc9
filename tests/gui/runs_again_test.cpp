// Plans that compute again, in the window: seen, decided about, taken back.
#include <QTemporaryDir>
#include <fstream>

#include "gui/model/details.h"
#include "gui/widgets/memory_legend.h"
#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/value_texts.h"
#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

constexpr const char* kAgainPlan = R"({"schema": "stowage-plan/1",
  "saved": [{"site": "layers.[6-11].mlp#8", "do": "recompute", "by": "ops"}],
  "recompute": [{"segment": "layers.[3-5]"}]})";

class RunsAgain : public testing::WindowTest {
 protected:
  RunsAgain() {
    open(QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz"));
    view_ = window_.findChild<PlanTreeView*>();
  }
  ~RunsAgain() override { QApplication::setPalette(QPalette()); }
  void open_plan() {
    const QString file = folder_.filePath(QStringLiteral("again.json"));
    std::ofstream(file.toStdString()) << kAgainPlan;
    open(file);
    ASSERT_TRUE(errors_.empty()) << errors_.front();
  }
  std::int32_t row_of(const std::string& name) {
    const PlanTree& tree = *view_->model().tree();
    const Trace& trace = tree.trace();
    for (std::size_t i = 0; i < tree.rows.size(); ++i) {
      const PlanRow& row = tree.rows[i];
      const bool found = row.kind == PlanRowKind::layer
                             ? trace.string(trace.layers.name[row.layer.index()]) == name
                             : row.kind == PlanRowKind::saved &&
                                   trace.string(trace.saved.site[row.saved.index()]) == name;
      if (found) return static_cast<std::int32_t>(i);
    }
    ADD_FAILURE() << name;
    return -1;
  }
  void press(const std::string& name, Qt::Key key) {
    const QModelIndex index = view_->view_index(row_of(name));
    view_->tree().selectionModel()->setCurrentIndex(
        index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    QTest::keyClick(&view_->tree(), key);
    window_.settle();
  }
  QString decision(const std::string& name) {
    return view_->view_index(row_of(name), PlanTreeModel::decision_column).data().toString();
  }
  const PlanDecisions& decisions() { return *window_.document().current()->decisions; }
  // Where the first op that runs again is, in the middle of it.
  QPoint on_again() {
    const LaneRow& row = timeline().view()->lane(LaneKind::compute).rows[0];
    for (std::size_t i = 0; i < row.infos.size(); ++i) {
      if (!row.infos[i].again) continue;
      TimeAxis axis = state().axis();
      const auto length = static_cast<double>(row.spans.end(i) - row.spans.begin(i));
      axis.show(static_cast<double>(row.spans.begin(i)) - length,
                static_cast<double>(row.spans.end(i)) + length);
      state().set_axis(axis);
      const double middle = timeline().axis().x_of((row.spans.begin(i) + row.spans.end(i)) / 2);
      return {timeline().plot().left() + static_cast<int>(middle),
              timeline().row_rect(LaneKind::compute).center().y()};
    }
    ADD_FAILURE() << "nothing runs again";
    return {};
  }

  QTemporaryDir folder_;
  PlanTreeView* view_ = nullptr;
};

TEST_F(RunsAgain, TheTimelineSaysWhichOpItIsAndAClickSelectsIt) {
  open_plan();
  const QPoint at = on_again();
  const QString tip = timeline().describe(at);
  EXPECT_TRUE(tip.contains("runs again in backward: recompute of ")) << tip.toStdString();
  QTest::mouseClick(&timeline(), Qt::LeftButton, {}, at);
  const Selection& selection = state().selection();
  ASSERT_EQ(selection.kind, Selection::Kind::op);
  const StepRows& rows = *window_.document().current()->rows;
  EXPECT_TRUE(rows.is_again(OpId(selection.row)));
  // The recorded step has it once: its original is what is selected there, and an op of it here.
  state().set_shown(Shown::recorded);
  EXPECT_EQ(timeline().view(), window_.document().recorded());
  EXPECT_FALSE(timeline().grab().toImage().isNull());
}

TEST_F(RunsAgain, ItIsHatchedInEveryPalette) {
  QPalette light;
  QPalette dark(QColor(45, 45, 48), QColor(35, 35, 38));
  QPalette contrast(Qt::black, Qt::black);
  for (QPalette* each : {&dark, &contrast}) {
    each->setColor(QPalette::Base, each == &dark ? QColor(25, 25, 28) : QColor(Qt::black));
    for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText}) {
      each->setColor(role, Qt::white);
    }
  }
  open_plan();
  const auto folder = qEnvironmentVariable("STOWAGE_PICTURES");
  int number = 0;
  for (const QPalette& palette : {light, dark, contrast}) {
    QApplication::setPalette(palette);
    window_.settle();
    on_again();
    const Theme theme = Theme::of(timeline().palette());
    const QImage picture = timeline().grab().toImage();
    if (!folder.isEmpty()) {
      picture.save(QStringLiteral("%1/runs_again_%2.png").arg(folder).arg(++number));
    }
    const QRect row = LanePainter::spans_rect(timeline().row_rect(LaneKind::compute));
    int lines = 0;
    int filled = 0;
    for (int x = row.left(); x < row.right(); ++x) {
      for (int y = row.top(); y < row.bottom(); ++y) {
        const QColor pixel = picture.pixelColor(x, y);
        lines += pixel == theme.again(LaneKind::compute) ? 1 : 0;
        for (std::size_t shade = 0; shade < Theme::kShades; ++shade) {
          filled += pixel == theme.span(LaneKind::compute, shade) ? 1 : 0;
        }
      }
    }
    EXPECT_GT(lines, 30) << number;
    EXPECT_GT(filled, lines);
    for (std::size_t shade = 0; shade < Theme::kShades; ++shade) {
      EXPECT_GE(
          contrast_ratio(theme.again(LaneKind::compute), theme.span(LaneKind::compute, shade)), 1.5)
          << number;
    }
  }
}

TEST_F(RunsAgain, TheCurveAndItsLegendHaveABandForIt) {
  const MemoryView& before = memory().view()->memory;
  const auto bands = before.bytes.size();
  EXPECT_FALSE(before.has_again());
  open_plan();
  const MemoryView& view = memory().view()->memory;
  ASSERT_TRUE(view.has_again());
  EXPECT_EQ(view.bytes.size(), bands + 1);
  EXPECT_EQ(band_word(view, view.classes.size()), "made again");
  // Also where there is no room for all of them.
  const QFontMetrics metrics = memory().fontMetrics();
  const auto rows = legend_of(view, metrics, metrics.horizontalAdvance("made again, and more"));
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front(), view.classes.size());
}

TEST_F(RunsAgain, RRecomputesALayerOrARowAndKAndUndoTakeItBack) {
  press("layers.3", Qt::Key_R);
  EXPECT_EQ(decision("layers.3"), QString(QChar(0x21BB)) + " recompute (by layer)");
  press("layers.7.mlp#8", Qt::Key_R);
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_TRUE(decision("layers.7.mlp#8").endsWith("recompute (by ops)"));
  EXPECT_TRUE(decision("layers.7").contains("mixed: 1 of ")) << decision("layers.7").toStdString();
  EXPECT_TRUE(view_->summary().contains(" recompute"));
  EXPECT_EQ(window_.document().undo_stack().count(), 2);
  // Its row in the step is another one: the selection goes along.
  const Selection recorded = in_recording(window_.document().current()->rows, state().selection());
  EXPECT_EQ(
      recorded.row,
      view_->model().tree()->rows[static_cast<std::size_t>(row_of("layers.7.mlp#8"))].saved.value);
  press("layers.3", Qt::Key_K);
  EXPECT_TRUE(decision("layers.3").endsWith("keep"));
  window_.document().undo_stack().undo();
  window_.settle();
  EXPECT_TRUE(decision("layers.3").endsWith("recompute (by layer)"));
  press("layers.3", Qt::Key_O);
  EXPECT_TRUE(decision("layers.3").endsWith("offload"));
  EXPECT_TRUE(decisions().segments.empty());
}

TEST_F(RunsAgain, WhatCannotRunAgainSaysWhyInOneLineAndIsAsItWas) {
  const QString before = decision("layers.0.attn");
  const SimulatedPtr shown = window_.document().current();
  // A row of the parameters' class: older than the step.
  const Trace& trace = window_.document().trace()->trace;
  std::string older;
  for (std::size_t i = 0; i < trace.saved.size() && older.empty(); ++i) {
    if (!view_->model().tree()->can_move(SavedId(i))) {
      older = trace.string(trace.saved.site[i]);
    }
  }
  ASSERT_FALSE(older.empty());
  press(older, Qt::Key_R);
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_NE(errors_[0].find("cannot be made again by ops"), std::string::npos) << errors_[0];
  EXPECT_EQ(errors_[0].find('\n'), std::string::npos);
  EXPECT_FALSE(window_.document().undo_stack().canUndo());
  EXPECT_EQ(window_.document().state(), shown->state);
  EXPECT_TRUE(decisions().segments.empty());
  EXPECT_EQ(decision("layers.0.attn"), before);
}

}  // namespace
}  // namespace stowage::gui
