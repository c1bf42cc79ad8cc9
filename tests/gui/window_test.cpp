// The window around the plots: menus, layout, exports, colours, accessibility.
#include <QClipboard>
#include <QComboBox>
#include <QDialog>
#include <QDir>
#include <QMenu>
#include <QSettings>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QToolButton>
#include <QWidgetAction>

#include "gui/app/samples.h"
#include "gui/model/command_text.h"
#include "tests/gui/window.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

class Window : public testing::WindowTest {};

QPalette dark() {
  QPalette palette;
  palette.setColor(QPalette::Base, QColor(30, 30, 30));
  palette.setColor(QPalette::Window, QColor(45, 45, 45));
  palette.setColor(QPalette::Text, QColor(230, 230, 230));
  palette.setColor(QPalette::WindowText, QColor(230, 230, 230));
  return palette;
}

QPalette high_contrast() {
  QPalette palette;
  for (const auto role : {QPalette::Base, QPalette::Window}) palette.setColor(role, Qt::black);
  for (const auto role : {QPalette::Text, QPalette::WindowText}) palette.setColor(role, Qt::white);
  return palette;
}

TEST_F(Window, TheFirstSampleIsLlamaAndOpensFromTheHelpMenu) {
  ASSERT_FALSE(samples().isEmpty());
  const auto* menu = window_.findChild<QMenu*>("samples");
  ASSERT_NE(menu, nullptr);
  EXPECT_EQ(menu->actions().first()->text(), "Llama-3-8B, 9 layers, fp32, H200");
  menu->actions().first()->trigger();
  window_.settle();
  ASSERT_NE(window_.document().current(), nullptr);
  EXPECT_EQ(window_.document().current()->result.peak_requested, 62'996'267'264);
}

TEST_F(Window, PlanForABudgetFromTheToolBar) {
  open(testing::kSmallCpu);
  auto* field = window_.findChild<QLineEdit*>("budget");
  QTest::keyClicks(field, "60%");
  QTest::keyClick(field, Qt::Key_Return);
  window_.settle();
  const SimulatedPtr current = window_.document().current();
  ASSERT_TRUE(current->plan().budget.device.has_value());
  EXPECT_TRUE(current->device_kept);
  EXPECT_EQ(timeline().view()->source, Source::predicted);
  field->clear();
  QTest::keyClicks(field, "much");
  QTest::keyClick(field, Qt::Key_Return);
  EXPECT_TRUE(window_.message().isVisible());
  EXPECT_EQ(window_.document().current(), current) << "what is no size changes nothing";
  field->clear();
  QTest::keyClicks(field, "1MB");
  QTest::keyClick(field, Qt::Key_Return);
  window_.settle();
  EXPECT_TRUE(window_.message().text().contains("floor")) << window_.message().text().toStdString();
  const SimulatedPtr after = window_.document().current();
  EXPECT_EQ(after->result.peak_requested, current->result.peak_requested)
      << "an infeasible budget decides nothing";
  EXPECT_FALSE(after->device_kept);
}

TEST_F(Window, TheRecordedAndThePlannedStepLookDifferent) {
  open(testing::kLlama);
  EXPECT_EQ(timeline().view()->source, Source::predicted);
  const QImage predicted = memory().grab().toImage();
  window_.findChild<QComboBox*>("shown")->setCurrentIndex(1);
  EXPECT_EQ(timeline().view()->source, Source::measured);
  EXPECT_NE(memory().grab().toImage(), predicted);
  Calibration other = window_.document().trace()->trace.calibration;
  other.duplex = kPpm / 2;
  window_.document().set_calibration(other);
  window_.findChild<QComboBox*>("shown")->setCurrentIndex(2);
  window_.settle();
  EXPECT_EQ(timeline().view()->source, Source::assumed);
}

TEST_F(Window, CopyAsCommandGivesTheEquivalentLine) {
  open(testing::kLlama);
  window_.action("copy_command")->trigger();
  EXPECT_EQ(QApplication::clipboard()->text(), "stowage inspect " + testing::kLlama);
  window_.document().set_budget(40'000'000'000, simulator::PeakKind::active);
  window_.settle();
  window_.action("copy_command")->trigger();
  EXPECT_EQ(QApplication::clipboard()->text(), "stowage inspect " + testing::kLlama)
      << "a budget alone decides nothing";
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("t.json.gz"), "t.json.gz");
}

TEST_F(Window, EveryExportWritesItsFile) {
  open(testing::kSmallCpu);
  const QTemporaryDir folder;
  const auto begins = [&](ExportKind kind, const char* name, const char* with) {
    const QString file = folder.filePath(name);
    window_.export_file(kind, file);
    window_.settle();
    const auto text = read_file(file.toStdString());
    ASSERT_TRUE(text) << name;
    EXPECT_NE(text->substr(0, 400).find(with), std::string::npos) << text->substr(0, 100);
  };
  begins(ExportKind::svg, "a.svg", "<svg");
  begins(ExportKind::csv_memory, "a.csv", "time_ns");
  begins(ExportKind::csv_timeline, "b.csv", "lane");
  begins(ExportKind::csv_stalls, "c.csv", ",");
  begins(ExportKind::csv_storages, "d.csv", "bytes");
  begins(ExportKind::chrome, "a.json", "traceEvents");
  begins(ExportKind::memory_viz, "m.pickle", "device_traces");
  EXPECT_NE(window_.action("export_memory_viz"), nullptr);
  begins(ExportKind::plan, "p.json", "stowage-plan/1");
  window_.save_picture(folder.filePath("a.png"));
  EXPECT_EQ(QImage(folder.filePath("a.png")).size(), window_.size());
  window_.export_file(ExportKind::svg, folder.filePath("no/such/folder/a.svg"));
  window_.settle();
  EXPECT_TRUE(window_.message().isVisible());
}

TEST_F(Window, TheLayoutIsKeptAndTheDefaultOneComesBack) {
  auto* dock = window_.findChild<QDockWidget*>("dock_memory");
  dock->hide();
  window_.close();
  MainWindow other;
  other.restore_layout();
  other.show();
  EXPECT_TRUE(other.findChild<QDockWidget*>("dock_memory")->isHidden());
  other.action("default_layout")->trigger();
  EXPECT_FALSE(other.findChild<QDockWidget*>("dock_memory")->isHidden());
  QSettings().clear();
}

TEST_F(Window, TheStartPageOffersAFileTheLastOnesAndAllSamples) {
  QSettings().clear();
  open(testing::kSmallCpu);
  auto* page = window_.findChild<StartPage*>();
  ASSERT_NE(page, nullptr);
  EXPECT_FALSE(page->isVisible()) << "a step is open";
  window_.action("close")->trigger();
  window_.settle();
  EXPECT_TRUE(page->isVisible());
  const auto* open_button = page->findChild<QToolButton*>("start_open");
  ASSERT_NE(open_button, nullptr);
  EXPECT_TRUE(open_button->isVisible());
  QMap<QString, QToolButton*> by_path;
  int of_small = 0;
  for (QToolButton* button : page->findChildren<QToolButton*>()) {
    if (!button->isVisible()) continue;
    by_path.insert(button->toolTip(), button);
    of_small += button->toolTip() == testing::kSmallCpu ? 1 : 0;
  }
  EXPECT_EQ(of_small, 2) << "it is a sample, and the last file";
  const QDir folder(STOWAGE_SOURCE_DIR "/traces/samples");
  const QStringList all = folder.entryList({"*.trace.json.gz"});
  EXPECT_GE(all.size(), 15);
  for (const QString& file : all) {
    EXPECT_TRUE(by_path.contains(folder.filePath(file))) << file.toStdString();
  }
  QTest::mouseClick(by_path.value(testing::kVit), Qt::LeftButton);
  window_.settle();
  ASSERT_NE(window_.document().trace(), nullptr);
  EXPECT_EQ(window_.document().trace()->path, testing::kVit.toStdString());
  EXPECT_FALSE(page->isVisible());
  QSettings().clear();
}

TEST_F(Window, TheTicksOfTheCurveHaveOneUnitAndPrecision) {
  open(testing::kVit);
  memory().set_budget(12'000'000'000, simulator::PeakKind::reserved, true, 8'670'000'000);
  const std::vector<AxisTick> ticks = memory().scale();
  ASSERT_GE(ticks.size(), 5U);
  EXPECT_EQ(ticks.front().label, "2 GB");
  EXPECT_GE(ticks.back().value, 12e9) << "with two digits";
  for (const AxisTick& tick : ticks) {
    EXPECT_EQ(tick.label.find('.'), std::string::npos) << tick.label;
    EXPECT_TRUE(tick.label.ends_with(" GB")) << tick.label;
  }
}

// Two thirds of the width, within what a separator takes.
TEST_F(Window, TimeHasTwoThirdsOfTheWidthAndTheTimelineIsAsHighAsItsLanes) {
  for (const QString& sample : {testing::kLlama, testing::kVit}) {
    open(sample);
    for (const QSize& size : {QSize(1280, 800), QSize(1920, 1080), QSize(3840, 2160)}) {
      window_.resize(size);
      window_.settle();
      EXPECT_NEAR(timeline().width(), size.width() * 2 / 3, 12) << size.width();
      EXPECT_EQ(memory().width(), timeline().width());
      EXPECT_NEAR(timeline().height(), timeline().sizeHint().height(), 2) << size.width();
      const int below = timeline().height() - timeline().minimap_rect().bottom();
      EXPECT_LT(below, timeline().minimap_rect().height()) << "no room for another row";
    }
  }
}

TEST_F(Window, ASeparatorThatWasMovedStaysThereWithAnotherFile) {
  open(testing::kLlama);
  const QPoint from(window_.width() * 2 / 3, window_.height() / 2);
  QPoint at = from;
  while (!window_.isSeparator(at) && at.x() < from.x() + 40) at.rx() += 1;
  if (!window_.isSeparator(at)) at = from;
  while (!window_.isSeparator(at) && at.x() > from.x() - 40) at.rx() -= 1;
  ASSERT_TRUE(window_.isSeparator(at));
  QTest::mousePress(&window_, Qt::LeftButton, {}, at);
  QTest::mouseMove(&window_, at - QPoint(200, 0));
  window_.settle();  // it moves when there is time
  QTest::mouseRelease(&window_, Qt::LeftButton, {}, at - QPoint(200, 0));
  const int narrow = timeline().width();
  EXPECT_LT(narrow, window_.width() * 2 / 3 - 100);
  open(testing::kVit);
  EXPECT_EQ(timeline().width(), narrow);
  window_.action("default_layout")->trigger();
  window_.settle();
  EXPECT_GT(timeline().width(), narrow + 100);
}

TEST_F(Window, TheQuestionMarkListsTheKeys) {
  EXPECT_EQ(window_.action("keys")->shortcut(), QKeySequence(Qt::Key_Question));
  window_.action("keys")->trigger();
  auto* dialog = window_.findChild<QDialog*>("keys_dialog");
  ASSERT_NE(dialog, nullptr);
  EXPECT_TRUE(dialog->isVisible());
  EXPECT_GT(dialog->findChild<QTableWidget*>()->rowCount(), 10);
  dialog->close();
}

TEST_F(Window, ColoursFollowThePaletteAndStayReadable) {
  open(testing::kSmallCpu);
  for (const QPalette& palette : {QPalette(), dark(), high_contrast()}) {
    timeline().setPalette(palette);
    memory().setPalette(palette);
    const Theme theme = Theme::of(palette);
    EXPECT_GE(contrast_ratio(theme.text, theme.background), 7);
    EXPECT_GE(contrast_ratio(theme.faint, theme.background), 4.5);
    EXPECT_GE(contrast_ratio(theme.budget, theme.background), 3);
    EXPECT_GE(contrast_ratio(theme.stall, theme.background), 3);
    for (const LaneKind kind :
         {LaneKind::compute, LaneKind::d2h, LaneKind::h2d, LaneKind::layers, LaneKind::launch}) {
      for (int name = 0; name < 8; ++name) {
        const QColor color = theme.span(kind, gui::Theme::shade_of(StringId(name)));
        EXPECT_GE(contrast_ratio(Theme::ink(color), color), 4.5);
      }
    }
    for (std::size_t of = 0; of < report::kWorkFamilies * Theme::kShades; ++of) {
      const QColor color =
          theme.family(static_cast<report::WorkFamily>(of / Theme::kShades), of % 4);
      EXPECT_GE(contrast_ratio(Theme::ink(color), color), 4.5);
    }
    const QImage image = memory().grab().toImage();
    EXPECT_EQ(image.pixel(memory().curve_rect().right() - 2, memory().curve_rect().top() + 2),
              palette.color(QPalette::Base).rgb());
  }
  EXPECT_TRUE(Theme::of(dark()).dark);
  EXPECT_FALSE(Theme::of(dark()).contrast);
  EXPECT_TRUE(Theme::of(high_contrast()).contrast);
}

TEST_F(Window, EveryControlHasANameForAScreenReader) {
  open(testing::kSmallCpu);
  int seen = 0;
  for (const QWidget* widget : window_.findChildren<QWidget*>()) {
    const bool ours = qobject_cast<const PlotView*>(widget) != nullptr ||
                      qobject_cast<const QLineEdit*>(widget) != nullptr ||
                      qobject_cast<const QComboBox*>(widget) != nullptr;
    if (!ours) continue;
    ++seen;
    EXPECT_FALSE(widget->accessibleName().isEmpty()) << widget->objectName().toStdString();
  }
  EXPECT_GE(seen, 6);
  for (const QAction* action : window_.findChildren<QAction*>()) {
    const bool of_qt = action->objectName().startsWith("_q_");
    const bool is_widget = qobject_cast<const QWidgetAction*>(action) != nullptr;
    if (action->isSeparator() || action->menu() != nullptr || of_qt || is_widget) continue;
    EXPECT_FALSE(action->text().isEmpty()) << action->objectName().toStdString();
  }
}

TEST_F(Window, LargeFontsAreNotCut) {
  open(testing::kSmallCpu);
  QFont font = timeline().font();
  font.setPointSizeF(font.pointSizeF() * 2);
  timeline().setFont(font);
  const QFontMetrics metrics(font);
  EXPECT_GE(timeline().row_rect(LaneKind::compute).height(), metrics.height() - 2);
  EXPECT_GE(timeline().plot().left(), metrics.horizontalAdvance("Copy back (H2D)"));
}

}  // namespace
}  // namespace stowage::gui
