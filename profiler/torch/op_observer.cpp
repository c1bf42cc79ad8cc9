#include "profiler/torch/op_observer.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "traces/result.h"

namespace stowage::profiler {

namespace {

std::atomic<OpListener*> g_listener{nullptr};

// What runs on this thread. RecordFunction calls begin and end of one function on the same thread,
// and both or neither, so a stack serves in place of a context of each: every op of a step that is
// being timed would pay for its allocation.
struct Running {
  bool is_op = false;
  std::int64_t outer_sequence = -1;
};

struct RunningStack {
  std::vector<Running> functions;
  std::int64_t backward_sequence = -1;  // of the autograd node that runs, -1 = none
};

thread_local RunningStack t_running;

constexpr std::string_view kEngineWrapper = "autograd::engine::evaluate_function";

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  RunningStack& running = t_running;
  Running& entry = running.functions.emplace_back();
  entry.outer_sequence = running.backward_sequence;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    running.backward_sequence = function.seqNr();
    return nullptr;
  }
  if (std::strncmp(function.name(), kEngineWrapper.data(), kEngineWrapper.size()) == 0) {
    return nullptr;
  }
  if (OpListener* const listener = g_listener.load(std::memory_order_acquire)) {
    entry.is_op = true;
    listener->op_begin(function, running.backward_sequence);
  }
  return nullptr;
}

void on_end(const at::RecordFunction&, at::ObserverContext*) {
  RunningStack& running = t_running;
  if (running.functions.empty()) return;
  const Running entry = running.functions.back();
  running.functions.pop_back();
  running.backward_sequence = entry.outer_sequence;
  if (!entry.is_op) return;
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
