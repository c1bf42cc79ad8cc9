// The tasks of docs/gui.md, the main way of each as it is written there. Change both together. With
// STOWAGE_PICTURES set to a folder the pictures of that page are made (scripts/gui_pictures.sh).
#include <QClipboard>
#include <QLabel>
#include <QProcess>
#include <QStatusBar>
#include <QTemporaryDir>
#include <algorithm>

#include "gui/widgets/alive_view.h"
#include "gui/widgets/blocks_view.h"
#include "gui/widgets/compare_view.h"
#include "gui/widgets/details_view.h"
#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/range_view.h"
#include "gui/widgets/what_if_panel.h"
#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

class UserTasks : public testing::Hands {
 protected:
  UserTasks() { window_.resize(1280, 820); }

  void open_the_sample() {
    menu({"Help", "Open a sample", "Llama-3-8B, 9 layers, fp32, H200"});
    ASSERT_NE(window_.document().current(), nullptr);
  }
  void plan_for_36_gb() {
    type(*window_.findChild<QLineEdit*>("budget"), "36GB");
    ASSERT_TRUE(current().device_kept);
  }
  template <class View>
  View& view(const char* id) {
    return *qobject_cast<View*>(window_.view(id));
  }
  CompareView& compare() { return view<CompareView>("compare"); }
  const Simulated& current() { return *window_.document().current(); }
  QString compared(const QString& figure, int column) {
    const QTreeWidget& rows = compare().rows();
    for (int i = 0; i < rows.topLevelItemCount(); ++i) {
      if (rows.topLevelItem(i)->text(0) == figure) return rows.topLevelItem(i)->text(column);
    }
    return {};
  }
  QString details() {
    return QString::fromStdString(details_text(view<DetailsView>("details").details()));
  }
};

TEST_F(UserTasks, FindWhatMakesThePeak) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  QTest::mouseClick(&timeline(), Qt::LeftButton, {}, at(timeline(), 0.5, 0.95));
  press(Qt::Key_P);
  auto& alive = view<AliveView>("alive");
  EXPECT_TRUE(in_front(alive));
  EXPECT_EQ(alive.bytes(), 62'996'267'264);
  EXPECT_TRUE(alive.title().contains("aten::mul")) << alive.title().toStdString();
  choose(alive.grouping(), "by class");
  EXPECT_EQ(alive.rows().topLevelItem(0)->text(0), "activation");
  EXPECT_EQ(alive.rows().topLevelItem(0)->text(2), "57.3 %");
  choose(alive.grouping(), "by layer");
  EXPECT_EQ(alive.rows().topLevelItem(0)->text(0), "head");
  EXPECT_EQ(alive.rows().topLevelItem(0)->text(1), "8.54 GB");
  picture("gui_peak");
}

TEST_F(UserTasks, SeeWhatIsDeadAtThePeakAndWhereItComesFrom) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  QTest::mouseClick(&timeline(), Qt::LeftButton, {}, at(timeline(), 0.5, 0.95));
  press(Qt::Key_P);
  auto& alive = view<AliveView>("alive");
  EXPECT_EQ(alive.findChild<QLabel*>("use")->text(),
            "63.0 GB: 8.41 GB dead, 35.0 GB saved and idle, 15.1 GB idle, 4.43 GB needed");
  QTreeWidget& rows = alive.rows();
  rows.setFocus();
  rows.setCurrentItem(rows.topLevelItem(0));
  press(Qt::Key_Return);
  ASSERT_TRUE(timeline().lifetime().has_value());
  EXPECT_TRUE(timeline().lifetime()->dead.has_value());
  EXPECT_EQ(timeline().lifetime()->bytes, 4'202'692'608);
  picture("gui_dead");
}

TEST_F(UserTasks, SeeWhichModuleOwnsABlock) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  tab("Blocks");
  auto& blocks = view<BlocksView>("blocks");
  const auto largest = std::max_element(
      blocks.blocks().begin(), blocks.blocks().end(),
      [](const MemoryBlock& a, const MemoryBlock& b) { return a.bytes < b.bytes; });
  const QPoint place = blocks.strip().place_of(static_cast<int>(largest - blocks.blocks().begin()));
  const QString text = blocks.strip().describe(place);
  EXPECT_TRUE(text.contains("\nhead\n") && text.contains("[8, 1024, 128256] float32"))
      << text.toStdString();
  QTest::mouseClick(&blocks.strip(), Qt::LeftButton, {}, place);
  window_.settle();
  ASSERT_TRUE(timeline().lifetime().has_value());
  EXPECT_EQ(timeline().lifetime()->bytes, 4'202'692'608);
  picture("gui_blocks");
}

TEST_F(UserTasks, FitTheStepInto36GbAndSeeTheCost) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  plan_for_36_gb();
  EXPECT_LE(current().result.peak_active, 36'000'000'000);
  EXPECT_TRUE(window_.statusBar()->currentMessage().contains("Planned for 36.0 GB"))
      << window_.statusBar()->currentMessage().toStdString();
  tab("Compare");
  choose(compare().choice(), "the plan with nothing moved");
  EXPECT_EQ(compared("peak active", 1), "63.0 GB");
  EXPECT_EQ(compared("peak active", 2), "35.9 GB");
  // Moving 27 GB hides behind compute but for a few milliseconds of 2.57 s.
  EXPECT_LT(current().result.step_ns, current().resident().step_ns * 101 / 100);
  EXPECT_TRUE(compared("step", 3).startsWith("▲ +") && compared("step", 3).contains("+0.2 %"))
      << compared("step", 3).toStdString();
  EXPECT_EQ(compared("lower bound", 2), "2.58 s");
  EXPECT_EQ(compared("gap to it", 2), "1.06 ms");
  EXPECT_EQ(compared("gap in percent", 2), "0.04 %");
  picture("gui_fit");
}

TEST_F(UserTasks, CompareWithThePolicyOfTorchtune) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  plan_for_36_gb();
  const Nanoseconds planned = current().result.step_ns;
  menu({"Plan", "Try a policy", "torchtune"});
  EXPECT_EQ(current().plan().made_by.policy, "torchtune");
  EXPECT_EQ(current().plan().budget.device, 36'000'000'000) << "the budget stays";
  tab("Compare");
  EXPECT_EQ(compare().choice().currentText(), "the plan with what it was before");
  EXPECT_GT(current().result.step_ns, planned * 3 / 2);
  EXPECT_TRUE(compared("step", 3).startsWith("▲ +1.4")) << compared("step", 3).toStdString();
  EXPECT_EQ(compared("saved tensors offloaded", 1), "69");
  EXPECT_EQ(compared("copies out for them", 1), "60");
  EXPECT_EQ(compared("layers.0: saved", 2), "6.04 GB");
  picture("gui_torchtune");
}

TEST_F(UserTasks, FindTheLongestStallAndItsCause) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  menu({"Plan", "Try a policy", "torchtune"});
  menu({"View", "Go to the longest stall"});
  EXPECT_TRUE(in_front(view<DetailsView>("details")));
  ASSERT_EQ(state().selection().kind, Selection::Kind::stall);
  const auto& stalls = current().result.stalls;
  const auto longest =
      std::max_element(stalls.begin(), stalls.end(),
                       [](const auto& a, const auto& b) { return a.duration < b.duration; });
  EXPECT_EQ(stalls[static_cast<std::size_t>(state().selection().row)].duration, longest->duration);
  for (const char* part :
       {"Waits for: the copy", "Where: in layers.", "Why: ", "What would remove it: "}) {
    EXPECT_TRUE(details().contains(part)) << part << "\n" << details().toStdString();
  }
  picture("gui_stall");
  const Selection first = state().selection();
  press(Qt::Key_L, Qt::ControlModifier);
  EXPECT_NE(state().selection(), first) << "the next one";
}

TEST_F(UserTasks, SeeWhatRunsInARangeOfTime) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  menu({"Plan", "Try a policy", "torchtune"});
  drag(timeline(), at(timeline(), 0.6, 0.5), at(timeline(), 0.7, 0.5));
  auto& range = view<RangeView>("range");
  EXPECT_TRUE(in_front(range));
  EXPECT_TRUE(range.title().contains("of the planned step, predicted"))
      << range.title().toStdString();
  EXPECT_EQ(range.rows().topLevelItem(0)->text(0), "aten::mm");
  choose(range.grouping(), "by kernel");
  EXPECT_GT(range.table().count, 100);
  choose(range.grouping(), "by op");
  picture("gui_range");
  key(Qt::Key_Escape);
  EXPECT_TRUE(range.title().startsWith("the whole planned step")) << range.title().toStdString();
}

TEST_F(UserTasks, MoveTheActivationsOfOneLayerAndUndo) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  auto& plan = view<PlanTreeView>("plan");
  const Bytes before = current().result.peak_requested;
  type(plan.filter(), "layers.4.mlp");
  const QModelIndex layer = [&] {
    const auto* model = plan.tree().model();
    const auto found = model->match(model->index(0, 0), Qt::DisplayRole, "layers.4.mlp", 1,
                                    Qt::MatchExactly | Qt::MatchRecursive);
    return found.value(0);
  }();
  ASSERT_TRUE(layer.isValid());
  QTest::mouseClick(plan.tree().viewport(), Qt::LeftButton, {},
                    plan.tree().visualRect(layer).center());
  press(Qt::Key_O);
  const Bytes after = current().result.peak_requested;
  EXPECT_GT(before - after, 2'000'000'000);
  EXPECT_GT(current().result.host_bytes, 2'000'000'000);
  EXPECT_EQ(window_.document().undo_stack().undoText(), "Offload 11 saved tensors");
  picture("gui_layer");
  press(Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(current().result.peak_requested, before);
  EXPECT_EQ(current().result.host_bytes, 0);
}

TEST_F(UserTasks, SeeWhatASlowerLinkWouldDo) {
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  plan_for_36_gb();
  const Nanoseconds before = current().result.step_ns;
  tab("What if");
  auto& what_if = view<WhatIfPanel>("what_if");
  choose(what_if.machine().link(), "PCIe 3.0 x16 (about 12 GB/s)");
  EXPECT_GT(current().result.step_ns, before);
  EXPECT_GT(current().result.stall_ns, 0);
  EXPECT_LE(current().result.peak_active, 36'000'000'000) << "points are chosen anew within it";
  EXPECT_TRUE(what_if.machine().is_marked("link.h2d_gbps"));
  EXPECT_EQ(timeline().view()->source, Source::assumed);
  picture("gui_link");
  QTest::mouseClick(&what_if.machine().reset_button(), Qt::LeftButton);
  window_.settle();
  EXPECT_EQ(current().result.step_ns, before);
}

TEST_F(UserTasks, SaveThePlanAndCopyTheCommandThatRunsIt) {
  const QTemporaryDir folder;
  // The name in the picture is the same each time it is made.
  const QDir place =
      qEnvironmentVariableIsEmpty("STOWAGE_PICTURES") ? QDir(folder.path()) : QDir::temp();
  const QString file = place.filePath("llama.plan.json");
  QFile::remove(file);
  ASSERT_NO_FATAL_FAILURE(open_the_sample());
  plan_for_36_gb();
  answer_file_dialog(file);
  press(Qt::Key_S, Qt::ControlModifier);
  ASSERT_TRUE(QFile::exists(file));
  EXPECT_EQ(window_.findChild<QLabel*>("saved")->text(), "plan: llama.plan.json");
  picture("gui_save");
  menu({"Edit", "Copy the command that runs the plan"});
  EXPECT_EQ(QApplication::clipboard()->text(),
            "stowage execute --trace " + testing::kLlama + " --plan " + file);
  press(Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
  const QString command = QApplication::clipboard()->text();
  EXPECT_EQ(command, "stowage simulate " + testing::kLlama + " --plan " + file);
  // The command line gives what the window shows.
  QStringList words = command.split(' ');
  words.removeFirst();
  QProcess process;
  process.start(QStringLiteral(STOWAGE_BIN_DIR "/stowage"), words << "--json");
  ASSERT_TRUE(process.waitForFinished(60'000));
  ASSERT_EQ(process.exitCode(), 0) << process.readAllStandardError().toStdString();
  const QString said = QString::fromUtf8(process.readAllStandardOutput());
  const QString peak = QString::number(current().result.peak_requested);
  EXPECT_TRUE(said.contains("\"peak_requested_bytes\":" + peak) ||
              said.contains("\"peak_requested_bytes\": " + peak))
      << said.left(600).toStdString();
}

}  // namespace
}  // namespace stowage::gui
