// A document with what views need of it, without a window.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QDir>
#include <QPalette>
#include <QTest>
#include <QWidget>
#include <string>
#include <vector>

#include "gui/model/explained.h"
#include "gui/model/plan_document.h"
#include "gui/model/view_state.h"
#include "tests/gui_model/spin.h"

namespace stowage::gui {

inline QString sample(const char* name) {
  return QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/%1.trace.json.gz")
      .arg(QLatin1String(name));
}

class Workbench : public ::testing::Test {
 protected:
  Workbench() {
    QObject::connect(&document_, &PlanDocument::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
  }
  ~Workbench() override { EXPECT_TRUE(errors_.empty()) << errors_.front(); }

  void settle() {
    ASSERT_TRUE(stowage::testing::spin_until([this] {
      return !document_.loading().busy() && !document_.simulating().busy() &&
             !document_.searching().busy() && !explanations_.busy();
    }));
  }
  void open(const QString& file) {
    document_.open(file);
    settle();
  }
  void open(Trace trace) {
    document_.open_trace(std::move(trace), QStringLiteral("made.trace.json"));
    settle();
  }
  // Shows it on no display with a size, so that events and pictures are those of a real one. With
  // STOWAGE_PICTURES set to a folder, show() and picture() leave PNGs there.
  static void show(QWidget& widget, int width, int height) {
    widget.resize(width, height);
    widget.show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&widget));
  }
  static QImage picture(QWidget& widget, const char* name) {
    const QImage image = widget.grab().toImage();
    const QString folder = qEnvironmentVariable("STOWAGE_PICTURES");
    if (!folder.isEmpty()) image.save(QDir(folder).filePath(QLatin1String(name) + ".png"));
    return image;
  }
  static QPalette dark() {
    QPalette palette(QColor(45, 45, 48), QColor(35, 35, 38));
    palette.setColor(QPalette::Base, QColor(25, 25, 28));
    palette.setColor(QPalette::AlternateBase, QColor(35, 35, 38));
    palette.setColor(QPalette::Text, Qt::white);
    palette.setColor(QPalette::WindowText, Qt::white);
    palette.setColor(QPalette::ButtonText, Qt::white);
    palette.setColor(QPalette::Highlight, QColor(60, 120, 200));
    return palette;
  }

  PlanDocument document_;
  ViewState state_;
  Explanations explanations_{document_};
  std::vector<std::string> errors_;
};

}  // namespace stowage::gui
