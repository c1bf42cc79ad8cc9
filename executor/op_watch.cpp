#include "executor/op_watch.h"

#include <ATen/record_function.h>

#include <cstddef>
#include <memory>
#include <mutex>

#include "executor/dispatched_op.h"
#include "executor/step_driver.h"

namespace stowage::executor {
namespace {

thread_local int t_open = 0;  // functions of this thread: a primitive op, and those in it

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  if (t_open == 0 && is_composite(function)) return nullptr;
  if (t_open++ > 0) return nullptr;
  if (StepDriver* const current = driver()) current->primitive_op_begin(function);
  return nullptr;
}

void on_end(const at::RecordFunction& function, at::ObserverContext*) {
  if (t_open == 0 || --t_open > 0) return;  // none: a composite one
  if (StepDriver* const current = driver()) current->primitive_op_end(function);
}

struct Watching {
  std::mutex mutex;
  std::size_t count = 0;
  at::CallbackHandle handle = 0;
};

// Never destroyed: plans may outlive main().
Watching& watching() {
  static auto* const one = new Watching;
  return *one;
}

}  // namespace

OpWatch::OpWatch() {
  Watching& one = watching();
  const std::lock_guard lock(one.mutex);
  if (one.count++ > 0) return;
  one.handle = at::addGlobalCallback(at::RecordFunctionCallback(&on_begin, &on_end)
                                         .needsInputs(true)
                                         .needsOutputs(true)
                                         .scopes({at::RecordScope::FUNCTION}));
}

OpWatch::~OpWatch() {
  Watching& one = watching();
  const std::lock_guard lock(one.mutex);
  if (--one.count == 0) at::removeCallback(one.handle);
}

}  // namespace stowage::executor
