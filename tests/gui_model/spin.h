// Runs the event loop until something holds; no sleeping.
#pragma once

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QEventLoop>

#include "tests/gui_model/slowdown.h"

namespace stowage::testing {

// False when `holds` did not come true within 60 s, under a sanitizer kSlowdown times that.
template <class Condition>
[[nodiscard]] bool spin_until(Condition holds) {
  const QDeadlineTimer deadline(60'000 * kSlowdown);
  while (!holds()) {
    if (deadline.hasExpired()) return false;
    QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents, 1000);
  }
  return true;
}

}  // namespace stowage::testing
