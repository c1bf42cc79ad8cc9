#include "profiler/torch/op_observer.h"

#include <atomic>
#include <memory>
#include <string>

#include "traces/result.h"

namespace stowage::profiler {

namespace {

std::atomic<OpListener*> g_listener{nullptr};

// Sequence number of the autograd node that runs on this thread, -1 = none. RecordFunction calls
// begin and end of one function on the same thread.
thread_local std::int64_t t_backward_sequence = -1;

struct OpContext final : at::ObserverContext {
  bool is_op = false;
  std::int64_t outer_sequence = -1;
};

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  auto context = std::make_unique<OpContext>();
  context->outer_sequence = t_backward_sequence;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    t_backward_sequence = function.seqNr();
    return context;
  }
  if (std::string_view(function.name()).starts_with("autograd::engine::evaluate_function")) {
    return context;
  }
  if (OpListener* const listener = g_listener.load(std::memory_order_acquire)) {
    context->is_op = true;
    listener->op_begin(function, t_backward_sequence);
  }
  return context;
}

void on_end(const at::RecordFunction&, at::ObserverContext* base) {
  auto* const context = static_cast<OpContext*>(base);
  if (context == nullptr) return;
  t_backward_sequence = context->outer_sequence;
  if (!context->is_op) return;
  if (OpListener* const listener = g_listener.load(std::memory_order_acquire)) listener->op_end();
}

}  // namespace

OpObserver::OpObserver(OpListener& listener, bool with_inputs) {
  OpListener* expected = nullptr;
  STOWAGE_ASSERT(g_listener.compare_exchange_strong(expected, &listener));
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(&on_begin, &on_end)
          .needsInputs(with_inputs)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OpObserver::~OpObserver() {
  at::removeCallback(handle_);
  g_listener.store(nullptr, std::memory_order_release);
}

}  // namespace stowage::profiler
