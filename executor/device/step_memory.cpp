#include "executor/device/step_memory.h"

#include <atomic>

namespace stowage::executor {

namespace {
thread_local std::optional<StepMemory*> t_memory;  // of the last guard
std::atomic<CurrentMemory> g_current{nullptr};
}  // namespace

StepMemory* current_memory() {
  if (t_memory) return *t_memory;
  const CurrentMemory current = g_current.load(std::memory_order_acquire);
  return current == nullptr ? nullptr : current();
}

void set_current_memory(CurrentMemory current) {
  g_current.store(current, std::memory_order_release);
}

StepMemoryGuard::StepMemoryGuard(StepMemory* memory) : previous_(t_memory) {
  t_memory = memory;
}
StepMemoryGuard::~StepMemoryGuard() {
  t_memory = previous_;
}

}  // namespace stowage::executor
