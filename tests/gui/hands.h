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
#include <algorithm>
#include <map>
#include <vector>

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
    // Without a window manager nobody gives a window its focus back behind a dialog.
    if (!window_.isActiveWindow()) QApplication::setActiveWindow(&window_);
    QWidget* focus = window_.focusWidget() != nullptr ? window_.focusWidget() : &window_;
    QTest::keyClick(focus, key, modifiers);
    window_.settle();
  }
  // The next dialog for files gets this name and a click on Save. Call it ahead of what opens the
  // dialog; one that does not close is a failure.
  void answer_file_dialog(const QString& file) {
    auto* timer = new QTimer(&window_);
    timer->setInterval(20);
    QObject::connect(timer, &QTimer::timeout, timer, [timer, file, tries = 0]() mutable {
      auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (dialog == nullptr || !dialog->isVisible()) return;
      // The next dialog is somebody else's, however soon it comes.
      QObject::connect(dialog, &QDialog::finished, timer, &QTimer::stop, Qt::UniqueConnection);
      auto* field = dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"));
      auto* button = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save);
      if (++tries == 50) {
        ADD_FAILURE() << "the dialog stays open with " << field->text().toStdString()
                      << (button->isEnabled() ? "" : ", it cannot be saved");
        timer->stop();
        return dialog->reject();
      }
      field->setCompleter(nullptr);
      field->setFocus();
      QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
      QTest::keyClicks(field, file);
      QTest::mouseClick(button, Qt::LeftButton);
    });
    timer->start();
  }
  // With STOWAGE_PICTURES set to a folder, the window as it is now is left there.
  void picture(const char* name) {
    const QString folder = qEnvironmentVariable("STOWAGE_PICTURES");
    if (folder.isEmpty()) return;
    QTest::mouseMove(window_.statusBar(), window_.statusBar()->rect().center());
    window_.settle();
    const QImage image = with_palette(window_.grab().toImage());
    EXPECT_TRUE(image.save(QDir(folder).filePath(QLatin1String(name) + ".png"), "PNG", 0));
  }

 private:
  // With its 256 most frequent colours: a third of the bytes, and no difference that is seen.
  static QImage with_palette(const QImage& image) {
    std::map<QRgb, int> counts;
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) ++counts[image.pixel(x, y)];
    }
    std::vector<std::pair<int, QRgb>> order;
    for (const auto& [color, count] : counts) order.emplace_back(-count, color);
    std::sort(order.begin(), order.end());
    QList<QRgb> table;
    for (const auto& [count, color] : order) {
      if (table.size() < 256) table << color;
    }
    return image.convertToFormat(QImage::Format_Indexed8, table);
  }
  static QAction* entry(const QList<QAction*>& actions, const QString& name) {
    for (QAction* action : actions) {
      if (action->text().section('\t', 0, 0).remove('&') == name) return action;
    }
    return nullptr;
  }
};

}  // namespace stowage::testing
