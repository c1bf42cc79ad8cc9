// HostUpdateThread: the thread that updates parameters on the host, one after the other, beside the
// step. Each update waits for the copy that brings its gradient (Device::wait_elsewhere); whoever
// needs what it wrote waits for it. It works on CPU tensors over host memory and allocates none of
// the device's (executor/device/host_work.h); what it does is seen by no op observer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "executor/device/device.h"

namespace stowage::executor {

class HostUpdateThread {
 public:
  // `device` outlives it. The thread starts with the first update.
  explicit HostUpdateThread(Device& device) : device_(device) {}
  // Finishes every submitted update, then joins.
  ~HostUpdateThread();
  HostUpdateThread(const HostUpdateThread&) = delete;
  HostUpdateThread& operator=(const HostUpdateThread&) = delete;

  // Runs `update` once `gradient` has come. Returns its number: 1, 2, .. in order of submission,
  // in which they are done. What `update` refers to lives until then.
  std::uint64_t submit(CopyTicket gradient, std::function<void()> update);
  // Until update `number` and all before it are done. Number 0 is always done. Rethrows, once, the
  // first exception that an update has thrown; the others behind that one are left out until then.
  // A stall of the device (Device::stand_still()).
  void wait(std::uint64_t number);
  void wait_for_all();
  // How long updates ran, without what they waited for, since the last call.
  [[nodiscard]] Nanoseconds take_busy_ns();
  // The same, and what was thrown is dropped: behind an exception of the step.
  void drop() noexcept;

 private:
  struct Job {
    CopyTicket gradient;
    std::function<void()> update;
  };

  void run();
  void until_done(std::unique_lock<std::mutex>& lock, std::uint64_t number);

  Device& device_;
  std::mutex mutex_;  // guards everything below but the thread
  std::condition_variable submitted_signal_;
  std::condition_variable done_signal_;
  std::deque<Job> queue_;
  std::uint64_t submitted_ = 0;
  std::uint64_t done_ = 0;
  Nanoseconds busy_ns_ = 0;
  std::exception_ptr thrown_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace stowage::executor
