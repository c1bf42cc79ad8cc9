// Work on the host beside a step: what it allocates is host memory, also where the device is a CPU.
#pragma once

namespace stowage::executor {

// Whether the calling thread does such work now.
[[nodiscard]] bool is_host_work();

// While it lives, the calling thread's CPU tensors are nobody's device memory: the tracked
// allocator (executor/device/tracked_allocator.h) neither counts nor places them.
class HostWorkGuard {
 public:
  HostWorkGuard();
  ~HostWorkGuard();
  HostWorkGuard(const HostWorkGuard&) = delete;
  HostWorkGuard& operator=(const HostWorkGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace stowage::executor
