// Every control says what it is: a name for a screen reader and a tool tip, in the window and in
// every dialog; a field for numbers says its unit.
#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QDialog>
#include <QHeaderView>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QRegularExpression>
#include <QSpinBox>
#include <QTabBar>

#include "gui/widgets/curve_pair.h"
#include "gui/widgets/pareto_plot.h"
#include "gui/widgets/record_dialog.h"
#include "gui/widgets/verify_dialog.h"
#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

// Parts that Qt makes inside its own controls: they take the name of what they are in.
bool is_part(const QWidget& widget) {
  const QString type = widget.metaObject()->className();
  if (widget.objectName().startsWith("qt_") || type == "QLineEditIconButton" ||
      type == "QDockWidgetTitleButton" || type == "QToolBarExtension" ||
      type == "QMenuBarExtension" || qobject_cast<const QHeaderView*>(&widget) != nullptr) {
    return true;
  }
  for (const QWidget* at = widget.parentWidget(); at != nullptr; at = at->parentWidget()) {
    const bool owns = qobject_cast<const QComboBox*>(at) != nullptr ||
                      qobject_cast<const QAbstractSpinBox*>(at) != nullptr ||
                      qobject_cast<const QTabBar*>(at) != nullptr ||
                      qobject_cast<const QAbstractItemView*>(at) != nullptr;
    if (owns) return true;
  }
  return false;
}

bool is_control(const QWidget& widget) {
  return qobject_cast<const QAbstractButton*>(&widget) != nullptr ||
         qobject_cast<const QLineEdit*>(&widget) != nullptr ||
         qobject_cast<const QComboBox*>(&widget) != nullptr ||
         qobject_cast<const QAbstractSpinBox*>(&widget) != nullptr ||
         qobject_cast<const QAbstractItemView*>(&widget) != nullptr ||
         qobject_cast<const QPlainTextEdit*>(&widget) != nullptr ||
         qobject_cast<const QProgressBar*>(&widget) != nullptr ||
         qobject_cast<const PlotView*>(&widget) != nullptr ||
         qobject_cast<const ParetoPlot*>(&widget) != nullptr ||
         qobject_cast<const CurvePair*>(&widget) != nullptr;
}

// What plots and tables say under the pointer depends on the place.
bool has_tip_of_its_own(const QWidget& widget) {
  return qobject_cast<const PlotView*>(&widget) != nullptr ||
         qobject_cast<const ParetoPlot*>(&widget) != nullptr ||
         qobject_cast<const QAbstractItemView*>(&widget) != nullptr ||
         qobject_cast<const QPlainTextEdit*>(&widget) != nullptr;
}

std::string told(const QWidget& widget) {
  return std::string(widget.metaObject()->className()) + " \"" + widget.objectName().toStdString() +
         "\" \"" + widget.accessibleName().toStdString() + "\" in " +
         widget.window()->objectName().toStdString();
}

int check(const QWidget& root) {
  int seen = 0;
  for (const QWidget* widget : root.findChildren<QWidget*>()) {
    if (!is_control(*widget) || is_part(*widget)) continue;
    ++seen;
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    const bool named = !widget->accessibleName().isEmpty() ||
                       (button != nullptr && button->text().remove('&').size() > 1);
    EXPECT_TRUE(named) << told(*widget);
    if (!has_tip_of_its_own(*widget)) {
      EXPECT_FALSE(widget->toolTip().isEmpty()) << told(*widget);
    }
    static const QRegularExpression unit(
        "\\b(GB/s|GB|GiB|MB|us|ms|bytes|steps|samples|tokens|factor|share|times)\\b",
        QRegularExpression::CaseInsensitiveOption);
    QString suffix;
    if (const auto* field = qobject_cast<const QDoubleSpinBox*>(widget)) suffix = field->suffix();
    if (const auto* field = qobject_cast<const QSpinBox*>(widget)) suffix = field->suffix();
    if (qobject_cast<const QAbstractSpinBox*>(widget) != nullptr) {
      EXPECT_TRUE(!suffix.isEmpty() || unit.match(widget->toolTip()).hasMatch()) << told(*widget);
    }
  }
  return seen;
}

class Labels : public testing::WindowTest {};

TEST_F(Labels, EveryControlOfTheWindowHasANameAndAToolTip) {
  open(testing::kSmallCpu);
  window_.action("find")->trigger();
  EXPECT_GE(check(window_), 40);
}

TEST_F(Labels, EveryControlOfEveryDialogHasANameAndAToolTip) {
  open(testing::kSmallCpu);
  for (const char* action : {"record", "verify", "keys"}) window_.action(action)->trigger();
  int dialogs = 0;
  for (const QDialog* dialog : window_.findChildren<QDialog*>()) {
    EXPECT_FALSE(dialog->windowTitle().isEmpty());
    EXPECT_GE(check(*dialog), 2) << dialog->objectName().toStdString();
    ++dialogs;
  }
  EXPECT_EQ(dialogs, 3);
}

TEST_F(Labels, EveryActionSaysWhatItDoes) {
  for (const QAction* action : window_.findChildren<QAction*>()) {
    const bool ours = !action->objectName().isEmpty() && !action->objectName().startsWith("_q_");
    if (!ours || action->isSeparator() || action->menu() != nullptr) continue;
    EXPECT_FALSE(action->text().isEmpty()) << action->objectName().toStdString();
    // An empty tool tip falls back to the text.
    EXPECT_NE(action->toolTip(), action->iconText()) << action->objectName().toStdString();
  }
}

TEST_F(Labels, TheWindowCanGoWhileABudgetIsBeingTyped) {
  auto window = std::make_unique<MainWindow>();
  watch(*window);
  window->show();
  window->open_files({testing::kSmallCpu});
  window->settle();
  auto* field = window->findChild<QLineEdit*>("budget");
  field->setFocus();
  QTest::keyClicks(field, "6");
  EXPECT_TRUE(field->isModified());
  window.reset();
  QApplication::processEvents();
  EXPECT_TRUE(errors_.empty());
}

}  // namespace
}  // namespace stowage::gui
