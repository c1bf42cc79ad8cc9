// A main window that is open and has painted, with what tests do to it.
#pragma once

#include <gtest/gtest.h>

#include <QTest>
#include <string>

#include "gui/app/main_window.h"

namespace stowage::testing {

inline const QString kLlama =
    QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/llama3-8b-l9-fp32-math-h200.trace.json.gz");
inline const QString kVit =
    QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/vit-fp32-h200.trace.json.gz");
inline const QString kSmallCpu =
    QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l6-fp32-cpu.trace.json.gz");

class WindowTest : public ::testing::Test {
 protected:
  WindowTest() {
    watch(window_);
    window_.resize(1280, 800);
    window_.show();
    window_.settle();
  }
  // What this window refuses is in errors_.
  void watch(gui::MainWindow& window) {
    QObject::connect(&window.document(), &gui::PlanDocument::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
  }
  void open(const QString& file) {
    window_.open_files({file});
    window_.settle();
  }
  gui::ViewState& state() { return window_.state(); }
  gui::TimelinePlot& timeline() { return window_.timeline(); }
  gui::MemoryPlot& memory() { return window_.memory(); }
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    timeline().setFocus();
    QTest::keyClick(&timeline(), key, modifiers);
  }
  // A place in the plot of a view, by its share of width and height.
  static QPoint at(const gui::PlotView& view, double x, double y) {
    const QRect plot = view.plot();
    return {plot.left() + static_cast<int>(plot.width() * x),
            plot.top() + static_cast<int>(plot.height() * y)};
  }
  static void drag(QWidget& view, const QPoint& from, const QPoint& to) {
    QTest::mouseMove(&view, from);
    QTest::mousePress(&view, Qt::LeftButton, {}, from);
    QTest::mouseMove(&view, (from + to) / 2);
    QTest::mouseMove(&view, to);
    QTest::mouseRelease(&view, Qt::LeftButton, {}, to);
  }
  static void wheel(QWidget& view, const QPoint& at, int angle, Qt::KeyboardModifiers modifiers) {
    QWheelEvent event(at, view.mapToGlobal(at), {}, {0, angle}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(&view, &event);
  }

  // Not so when its tab is behind another one.
  static bool in_front(const QWidget& view) { return !view.visibleRegion().isEmpty(); }

  gui::MainWindow window_;
  std::vector<std::string> errors_;
};

}  // namespace stowage::testing
