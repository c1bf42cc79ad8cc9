#include "executor/host_update_thread.h"

#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <chrono>
#include <utility>

#include "executor/device/host_work.h"

namespace stowage::executor {

HostUpdateThread::~HostUpdateThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  submitted_signal_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t HostUpdateThread::submit(CopyTicket gradient, std::function<void()> update) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({gradient, std::move(update)});
    number = ++submitted_;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  submitted_signal_.notify_one();
  return number;
}

void HostUpdateThread::until_done(std::unique_lock<std::mutex>& lock, std::uint64_t number) {
  done_signal_.wait(lock, [&] { return done_ >= number; });
}

void HostUpdateThread::wait(std::uint64_t number) {
  if (number == 0) return;
  device_.stand_still([&] {
    std::unique_lock lock(mutex_);
    until_done(lock, number);
  });
  const std::lock_guard lock(mutex_);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void HostUpdateThread::wait_for_all() {
  std::uint64_t all = 0;
  {
    const std::lock_guard lock(mutex_);
    all = submitted_;
  }
  wait(all);
}

Nanoseconds HostUpdateThread::take_busy_ns() {
  const std::lock_guard lock(mutex_);
  return std::exchange(busy_ns_, 0);
}

void HostUpdateThread::drop() noexcept {
  std::unique_lock lock(mutex_);
  until_done(lock, submitted_);
  thrown_ = nullptr;
}

void HostUpdateThread::run() {
  const HostWorkGuard host_work;
  const at::RecordFunctionGuard unseen(/*is_enabled=*/false);
  const c10::AutoGradMode no_graph(/*enabled=*/false);
  std::unique_lock lock(mutex_);
  for (;;) {
    submitted_signal_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    const bool is_wanted = thrown_ == nullptr;
    lock.unlock();
    std::exception_ptr thrown;
    Nanoseconds busy = 0;
    try {
      device_.wait_elsewhere(job.gradient);
      const auto begin = std::chrono::steady_clock::now();
      if (is_wanted) job.update();
      busy = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    } catch (...) {
      thrown = std::current_exception();
    }
    job.update = {};  // what it held goes on this thread, ahead of whoever waits
    lock.lock();
    if (thrown && !thrown_) thrown_ = thrown;
    ++done_;
    busy_ns_ += busy;
    done_signal_.notify_all();
  }
}

}  // namespace stowage::executor
