// The table of keys, the actions and views that use it, and the list made of it: none without the
// other.
#include "gui/widgets/keys.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QDialog>
#include <QDirIterator>
#include <QDockWidget>
#include <QFile>
#include <QGroupBox>
#include <QLabel>
#include <QMenuBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QTableWidget>
#include <map>
#include <set>

#include "gui/widgets/alive_view.h"
#include "gui/widgets/details_view.h"
#include "gui/widgets/pareto_view.h"
#include "tests/gui/window.h"
#include "tests/gui_model/spin.h"

namespace stowage::gui {
namespace {

class Keys : public testing::WindowTest {};

TEST_F(Keys, ActionsAndTheTableHaveTheSameShortcuts) {
  std::set<QString> with_keys;
  for (const QAction* action : window_.findChildren<QAction*>()) {
    if (action->shortcuts().isEmpty()) continue;
    EXPECT_EQ(action->shortcuts(), shortcuts_of(action->objectName()))
        << action->text().toStdString();
    with_keys.insert(action->objectName());
  }
  for (const KeyRow& row : key_table()) {
    if (row.place != KeyPlace::window) continue;
    EXPECT_EQ(with_keys.count(row.action), 1U) << row.action.toStdString();
  }
  EXPECT_GE(with_keys.size(), 14U);
}

TEST_F(Keys, NoKeyMeansTwoThingsInOnePlace) {
  std::set<std::pair<KeyPlace, QString>> seen;
  for (const KeyRow& row : key_table()) {
    EXPECT_FALSE(row.text.isEmpty());
    EXPECT_FALSE(keys_text(row).isEmpty()) << row.text.toStdString();
    for (const QKeySequence& sequence : row.sequences) {
      EXPECT_TRUE(seen.insert({row.place, sequence.toString()}).second)
          << sequence.toString().toStdString();
    }
  }
}

TEST_F(Keys, EveryKeyOfAViewIsFoundWithTheNumberPadToo) {
  for (const KeyRow& row : key_table()) {
    if (row.place == KeyPlace::window) continue;
    for (const QKeySequence& sequence : row.sequences) {
      const QKeyCombination keys = sequence[0];
      const QKeyEvent plain(QEvent::KeyPress, keys.key(), keys.keyboardModifiers());
      EXPECT_EQ(key_of(plain, row.place), row.key) << sequence.toString().toStdString();
      const QKeyEvent pad(QEvent::KeyPress, keys.key(),
                          keys.keyboardModifiers() | Qt::KeypadModifier);
      EXPECT_EQ(key_of(pad, row.place), row.key) << sequence.toString().toStdString();
    }
  }
  const QKeyEvent plus(QEvent::KeyPress, Qt::Key_Plus, Qt::ShiftModifier);
  EXPECT_EQ(key_of(plus, KeyPlace::plot), Key::closer);
  const QKeyEvent other(QEvent::KeyPress, Qt::Key_W, Qt::ControlModifier);
  EXPECT_FALSE(key_of(other, KeyPlace::plot).has_value());
}

TEST_F(Keys, TheListHasEveryRowOfTheTable) {
  window_.action("keys")->trigger();
  auto* dialog = window_.findChild<QDialog*>("keys_dialog");
  ASSERT_NE(dialog, nullptr);
  const auto* table = dialog->findChild<QTableWidget*>();
  std::set<std::pair<QString, QString>> listed;
  for (int i = 0; i < table->rowCount(); ++i) {
    const QTableWidgetItem* text = table->item(i, 1);
    if (text != nullptr) listed.insert({table->item(i, 0)->text(), text->text()});
  }
  for (const KeyRow& row : key_table()) {
    EXPECT_EQ(listed.count({keys_text(row), row.text}), 1U) << keys_text(row).toStdString();
  }
  for (const char* key : {"K", "O", "Shift+K", "Shift+O", "Ctrl+Shift+K", "Ctrl+Shift+O", "F", "P",
                          "Return", "Ctrl+C", "Left"}) {
    EXPECT_TRUE(std::any_of(listed.begin(), listed.end(), [&](const auto& row) {
      return row.first.split(", ").contains(key);
    })) << key;
  }
  dialog->close();
}

TEST_F(Keys, NoOtherFileOfTheWindowNamesAKey) {
  const QRegularExpression key("Qt::Key_\\w+|QKeySequence::(?!NativeText)\\w+");
  int files = 0;
  for (const char* folder : {"/gui/app", "/gui/widgets"}) {
    QDirIterator at(STOWAGE_SOURCE_DIR + QString(folder), {"*.cpp", "*.h"}, QDir::Files);
    while (at.hasNext()) {
      QFile file(at.next());
      if (at.fileName() == "keys.cpp") continue;
      ASSERT_TRUE(file.open(QIODevice::ReadOnly));
      const auto found = key.match(QString::fromUtf8(file.readAll()));
      EXPECT_FALSE(found.hasMatch())
          << at.fileName().toStdString() << ": " << found.captured().toStdString();
      ++files;
    }
  }
  EXPECT_GT(files, 40);
}

// "H" of "&Help"; empty = none.
QString key_with_alt(const QString& text) {
  const QString at = QKeySequence::mnemonic(text).toString();
  return at.section('+', -1);
}

// Two of one letter in one window, be it behind a tab, take turns: each works every second time.
TEST_F(Keys, NoLetterWithAltIsGivenTwiceInOneWindow) {
  open(testing::kSmallCpu);
  window_.action("record")->trigger();
  window_.action("verify")->trigger();
  QList<QWidget*> windows{&window_};
  for (QDialog* dialog : window_.findChildren<QDialog*>()) windows << dialog;
  ASSERT_GE(windows.size(), 3);
  std::size_t letters = 0;
  for (QWidget* window : windows) {
    std::map<QString, std::string> seen;
    const auto take = [&](const QString& text) {
      const QString letter = key_with_alt(text);
      if (letter.isEmpty()) return;
      EXPECT_TRUE(seen.emplace(letter, text.toStdString()).second)
          << letter.toStdString() << ": " << seen[letter] << " and " << text.toStdString();
    };
    for (QWidget* part : window->findChildren<QWidget*>()) {
      if (part->window() != window) continue;
      if (const auto* label = qobject_cast<QLabel*>(part); label && label->buddy() != nullptr) {
        take(label->text());
      }
      if (const auto* button = qobject_cast<QAbstractButton*>(part)) take(button->text());
      if (const auto* group = qobject_cast<QGroupBox*>(part)) take(group->title());
      if (const auto* bar = qobject_cast<QMenuBar*>(part)) {
        for (const QAction* menu : bar->actions()) take(menu->text());
      }
    }
    letters += seen.size();
    if (window != &window_) window->close();
  }
  EXPECT_GT(letters, 20U);
}

TEST_F(Keys, AltWithALetterOfAHiddenTabShowsIt) {
  open(testing::kSmallCpu);
  QWidget* what_if = window_.view("what_if");
  ASSERT_FALSE(in_front(*what_if));
  if (!window_.isActiveWindow()) QApplication::setActiveWindow(&window_);
  QTest::keyClick(&window_, Qt::Key_A, Qt::AltModifier);
  EXPECT_EQ(window_.focusWidget(), window_.findChild<QComboBox*>("card"));
  QApplication::processEvents();
  EXPECT_TRUE(in_front(*what_if));
}

TEST_F(Keys, CancelEndsMemoryAgainstTimeAndSaysWhatItCancelled) {
  window_.action("cancel")->trigger();
  EXPECT_EQ(window_.message().text(), "Nothing runs that could be cancelled.");
  open(testing::kSmallCpu);
  auto* pareto = qobject_cast<ParetoView*>(window_.view("pareto"));
  window_.raise_view("pareto");
  pareto->search().start();
  ASSERT_TRUE(pareto->search().busy());
  window_.action("cancel")->trigger();
  EXPECT_FALSE(pareto->search().busy());
  EXPECT_TRUE(pareto->search().stopped());
  EXPECT_EQ(window_.message().text(),
            "Cancelled: Computing memory against time. What is shown stays as it was.");
  EXPECT_TRUE(pareto->reason().startsWith("Cancelled before the first plan was found"))
      << pareto->reason().toStdString();
  // Points of the search that is over do not come any more.
  window_.settle();
  EXPECT_TRUE(pareto->search().points().empty());
}

TEST_F(Keys, ComputeKeepsItsViewInFront) {
  open(testing::kLlama);
  auto* pareto = qobject_cast<ParetoView*>(window_.view("pareto"));
  window_.raise_view("pareto");
  if (!window_.isActiveWindow()) QApplication::setActiveWindow(&window_);
  pareto->start_button().setFocus(Qt::MouseFocusReason);
  QTest::mouseClick(&pareto->start_button(), Qt::LeftButton);
  ASSERT_TRUE(pareto->search().busy());
  ASSERT_TRUE(testing::spin_until([&] { return !pareto->start_button().isEnabled(); }));
  QApplication::processEvents();  // the focus has gone on
  EXPECT_TRUE(in_front(*pareto));
  window_.action("cancel")->trigger();
  window_.settle();
  EXPECT_TRUE(in_front(*pareto));
}

TEST_F(Keys, TabLeavesTheViewsInFrontThatAre) {
  open(testing::kSmallCpu);
  if (!window_.isActiveWindow()) QApplication::setActiveWindow(&window_);
  timeline().setFocus();
  const auto front = [&] {
    QStringList names;
    for (const QDockWidget* dock : window_.findChildren<QDockWidget*>()) {
      if (in_front(*dock)) names << dock->objectName();
    }
    return names;
  };
  const QStringList before = front();
  std::set<QWidget*> seen;
  for (int i = 0; i < 200; ++i) {
    ASSERT_NE(QApplication::focusWidget(), nullptr);
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
    QApplication::processEvents();
    ASSERT_EQ(front(), before) << i << " "
                               << QApplication::focusWidget()->objectName().toStdString();
    if (!seen.insert(QApplication::focusWidget()).second) break;
  }
  EXPECT_GT(seen.size(), 6U) << "it goes round";
}

TEST_F(Keys, PRaisesWhatIsAliveAndShowsThePeak) {
  open(testing::kLlama);
  auto* alive = qobject_cast<AliveView*>(window_.view("alive"));
  ASSERT_FALSE(in_front(*alive));
  alive->show_cursor();
  key(Qt::Key_P);
  EXPECT_TRUE(in_front(*alive));
  EXPECT_EQ(alive->moment().currentIndex(), 0);
  EXPECT_EQ(alive->bytes(), 62'996'267'264);
  // From its own rows, too.
  state().clear();
  QTest::keyClick(&alive->rows(), Qt::Key_P);
  EXPECT_EQ(state().selection().kind, Selection::Kind::event);
}

TEST_F(Keys, TheBudgetIsOneValueInTheToolBarAndInWhatIf) {
  open(testing::kSmallCpu);
  auto* bar = window_.findChild<QLineEdit*>("budget");
  QLineEdit* panel = nullptr;
  int budgets = 0;
  for (QLineEdit* field : window_.findChildren<QLineEdit*>()) {
    if (field->accessibleName() != bar->accessibleName()) continue;
    ++budgets;
    if (field != bar) panel = field;
  }
  ASSERT_EQ(budgets, 2);
  bar->setFocus();
  QTest::keyClicks(bar, "60%");
  QTest::keyClick(bar, Qt::Key_Return);
  window_.settle();
  EXPECT_EQ(panel->text(), "60%");
  panel->setFocus();
  panel->selectAll();
  QTest::keyClicks(panel, "90%");
  QTest::keyClick(panel, Qt::Key_Return);
  window_.settle();
  EXPECT_EQ(bar->text(), "90%");
  window_.document().set_budget(123'000'000, simulator::PeakKind::requested);
  window_.settle();
  EXPECT_EQ(bar->text(), "123 MB");
  EXPECT_EQ(panel->text(), "123 MB");
  EXPECT_EQ(window_.findChild<QComboBox*>("counter")->currentText(), "requested bytes");
  // Find a plan is for the value that both show.
  window_.document().set_budget(window_.document().trace()->resident_cached.peak_active * 7 / 10,
                                simulator::PeakKind::active);
  window_.settle();
  const auto buttons = window_.view("what_if")->findChildren<QPushButton*>();
  for (QPushButton* button : buttons) {
    if (button->text().contains("Find")) QTest::mouseClick(button, Qt::LeftButton);
  }
  window_.settle();
  EXPECT_TRUE(window_.document().current()->device_kept);
  EXPECT_EQ(window_.document().current()->plan().made_by.policy, "auto");
}

}  // namespace
}  // namespace stowage::gui
