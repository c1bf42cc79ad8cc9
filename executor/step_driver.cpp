#include "executor/step_driver.h"

#include <atomic>

namespace stowage::executor {

namespace {
std::atomic<StepDriver*> g_driver{nullptr};
}  // namespace

StepDriver* driver() {
  return g_driver.load(std::memory_order_acquire);
}

void set_driver(StepDriver* driver) {
  g_driver.store(driver, std::memory_order_release);
}

}  // namespace stowage::executor
