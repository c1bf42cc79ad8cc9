// An application that knows how long its thread worked on the longest event: what blocks a window.
// Counted in the thread's own CPU time, so that a busy machine changes nothing.
#pragma once

#include <ctime>

#include <QApplication>
#include <algorithm>

namespace stowage::testing {

class WatchedApplication : public QApplication {
 public:
  using QApplication::QApplication;

  bool notify(QObject* receiver, QEvent* event) override {
    if (depth_ > 0) return QApplication::notify(receiver, event);
    ++depth_;
    const double begin = cpu_ms();
    const bool handled = QApplication::notify(receiver, event);
    longest_ms_ = std::max(longest_ms_, cpu_ms() - begin);
    --depth_;
    return handled;
  }

  static WatchedApplication& instance() {
    return *static_cast<WatchedApplication*>(QCoreApplication::instance());
  }
  void forget() { longest_ms_ = 0; }
  [[nodiscard]] double longest_ms() const { return longest_ms_; }

 private:
  static double cpu_ms() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
  }

  int depth_ = 0;
  double longest_ms_ = 0;
};

}  // namespace stowage::testing
