// The threads that update parameters on the host, several parts at once.
#pragma once

#include <c10/core/thread_pool.h>

#include <functional>
#include <memory>
#include <mutex>

#include "executor/host_parts.h"

namespace stowage::executor {

// Its threads are its own, and none of them divides an op: at::parallel_for() is a loop on one
// thread where it is not compiled with OpenMP, and then each op is divided, with a barrier of all.
class HostTeam {
 public:
  // Each part once, without a graph and as work of the host (HostWorkGuard), on as many threads as
  // PyTorch would divide an op of the caller's among; on the caller's alone where that is one. The
  // first exception is thrown behind all of them. From any thread.
  void for_each(const HostParts& parts, const std::function<void(const HostTensors&)>& update);

 private:
  [[nodiscard]] c10::ThreadPool& of_threads(int count);

  std::mutex mutex_;  // of the pool, while it is used
  std::unique_ptr<c10::ThreadPool> pool_;
};

}  // namespace stowage::executor
