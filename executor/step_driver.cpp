#include "executor/step_driver.h"

#include <atomic>

namespace stowage::executor {

namespace {
std::atomic<StepDriver*> g_driver{nullptr};
std::atomic<DriverSource> g_source{nullptr};  // null = g_driver
}  // namespace

StepDriver* driver() {
  if (const DriverSource source = g_source.load(std::memory_order_acquire)) return source();
  return g_driver.load(std::memory_order_acquire);
}

void set_driver(StepDriver* driver) {
  g_driver.store(driver, std::memory_order_release);
}

void set_driver_source(DriverSource source) {
  if (source == &driver) return;
  g_source.store(source, std::memory_order_release);
}

}  // namespace stowage::executor
