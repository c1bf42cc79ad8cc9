#include "executor/device/process_forks.h"

#include <pthread.h>

#include <atomic>

namespace stowage::executor {
namespace {

std::atomic<std::int64_t> g_forks{0};

}  // namespace

std::int64_t process_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return g_forks.load(std::memory_order_relaxed);
}

}  // namespace stowage::executor
