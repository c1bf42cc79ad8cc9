// Runs the event loop until something holds; no sleeping.
#pragma once

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QEventLoop>

#include "tests/support/slowdown.h"

namespace stowage::testing {

// False when `holds` did not come true within 4 minutes, under a sanitizer some more.
template <class Condition>
[[nodiscard]] bool spin_until(Condition holds) {
  const QDeadlineTimer deadline(kSlowdown > 1 ? 580'000 : 240'000);
  while (!holds()) {
    if (deadline.hasExpired()) return false;
    QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents, 1000);
  }
  return true;
}

}  // namespace stowage::testing
