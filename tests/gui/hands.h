// What a person does in the window, with real key and mouse events: menus, tabs, lists, fields.
#pragma once

#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QFileDialog>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QStatusBar>
#include <QTabBar>
#include <QTest>
#include <QTimer>

#include "tests/gui/window.h"
#include "tests/gui_model/spin.h"

namespace stowage::testing {

class Hands : public WindowTest {
 protected:
  // "Plan", "Try a policy", "torchtune": opens one menu after the other and clicks the last entry.
  // `&` and what follows a tab are no part of the names.
  void menu(const QStringList& path) {
    auto* bar = window_.findChild<QMenuBar*>();
    QAction* at = entry(bar->actions(), path.first());
    ASSERT_NE(at, nullptr) << path.first().toStdString();
    QTest::mouseClick(bar, Qt::LeftButton, {}, bar->actionGeometry(at).center());
    for (int i = 1; i < path.size(); ++i) {
      QMenu* open = at->menu();
      ASSERT_TRUE(spin_until([&] { return open->isVisible(); })) << path[i - 1].toStdString();
      at = entry(open->actions(), path[i]);
      ASSERT_NE(at, nullptr) << path[i].toStdString();
      ASSERT_TRUE(at->isEnabled()) << path[i].toStdString();
      QTest::mouseMove(open, open->actionGeometry(at).center());
      QTest::mouseClick(open, Qt::LeftButton, {}, open->actionGeometry(at).center());
    }
    window_.settle();
  }
  // The tab of a dock.
  void tab(const QString& title) {
    for (QTabBar* bar : window_.findChildren<QTabBar*>()) {
      for (int i = 0; i < bar->count(); ++i) {
        if (bar->tabText(i) != title || !bar->isVisible()) continue;
        QTest::mouseClick(bar, Qt::LeftButton, {}, bar->tabRect(i).center());
        window_.settle();
        return;
      }
    }
    FAIL() << "there is no tab " << title.toStdString();
  }
  // An entry of a list that folds out.
  void choose(QComboBox& list, const QString& text) {
    const int row = list.findText(text);
    ASSERT_GE(row, 0) << text.toStdString();
    QTest::mouseClick(&list, Qt::LeftButton);
    QAbstractItemView* view = list.view();
    ASSERT_TRUE(spin_until([&] { return view->isVisible(); }));
    QTest::keyClick(view, Qt::Key_Home);
    for (int i = 0; i < row; ++i) QTest::keyClick(view, Qt::Key_Down);
    QTest::keyClick(view, Qt::Key_Return);
    ASSERT_TRUE(spin_until([&] { return !view->isVisible(); }));
    window_.settle();
  }
  // Replaces what is in a field, and Return.
  void type(QLineEdit& field, const QString& text) {
    QTest::mouseClick(&field, Qt::LeftButton);
    QTest::keyClick(&field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&field, text);
    QTest::keyClick(&field, Qt::Key_Return);
    window_.settle();
  }
  // To whatever has the focus.
  void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
    QWidget* focus = window_.focusWidget() != nullptr ? window_.focusWidget() : &window_;
    QTest::keyClick(focus, key, modifiers);
    window_.settle();
  }
  // The next dialog for files gets this name and a click on Save. Call it ahead of what opens the
  // dialog.
  void answer_file_dialog(const QString& file) {
    auto* timer = new QTimer(&window_);
    timer->setInterval(5);
    QObject::connect(timer, &QTimer::timeout, timer, [timer, file] {
      auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (dialog == nullptr || !dialog->isVisible()) return;
      timer->stop();
      auto* field = dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"));
      field->setCompleter(nullptr);
      field->setFocus();
      QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
      QTest::keyClicks(field, file);
      auto* buttons = dialog->findChild<QDialogButtonBox*>();
      QTest::mouseClick(buttons->button(QDialogButtonBox::Save), Qt::LeftButton);
    });
    timer->start();
  }
  // With STOWAGE_PICTURES set to a folder, the window as it is now is left there.
  void picture(const char* name) {
    const QString folder = qEnvironmentVariable("STOWAGE_PICTURES");
    if (folder.isEmpty()) return;
    QTest::mouseMove(window_.statusBar(), window_.statusBar()->rect().center());
    window_.settle();
    EXPECT_TRUE(window_.grab().save(QDir(folder).filePath(QLatin1String(name) + ".png"), "PNG", 0));
  }

 private:
  static QAction* entry(const QList<QAction*>& actions, const QString& name) {
    for (QAction* action : actions) {
      if (action->text().section('\t', 0, 0).remove('&') == name) return action;
    }
    return nullptr;
  }
};

}  // namespace stowage::testing
