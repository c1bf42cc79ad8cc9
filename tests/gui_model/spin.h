// Runs the event loop until something holds; no sleeping.
#pragma once

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QEventLoop>

namespace stowage::testing {

// False when `holds` did not come true within 60 s.
template <class Condition>
[[nodiscard]] bool spin_until(Condition holds) {
  const QDeadlineTimer deadline(60'000);
  while (!holds()) {
    if (deadline.hasExpired()) return false;
    QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents, 1000);
  }
  return true;
}

}  // namespace stowage::testing
