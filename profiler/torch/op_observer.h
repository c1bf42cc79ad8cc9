// OpObserver: every dispatched op of the process through RecordFunction. One at a
// time; callbacks are global, so ops of autograd's own threads are seen too.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string_view>

namespace stowage::profiler {

// Receives ops on the thread that runs them, in program order.
class OpListener {
 public:
  virtual ~OpListener() = default;
  // `op` is the running RecordFunction: name(), inputs(), seqNr(), operator_schema().
  virtual void op_begin(const at::RecordFunction& op, std::int64_t backward_sequence) = 0;
  virtual void op_end() = 0;
};

// While it lives, `listener` sees every op of scope FUNCTION. The engine's own wrappers
// ("autograd::engine::evaluate_function: ..") are not ops and are left out.
class OpObserver {
 public:
  // Without `with_inputs` the listener's op has no inputs(), and an op costs less: PyTorch boxes
  // them for the observer.
  OpObserver(OpListener& listener, bool with_inputs);
  ~OpObserver();
  OpObserver(const OpObserver&) = delete;
  OpObserver& operator=(const OpObserver&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace stowage::profiler
