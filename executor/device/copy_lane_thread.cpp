#include "executor/device/copy_lane_thread.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "traces/result.h"

namespace stowage::executor {

namespace {

Nanoseconds now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

CopyLaneThread::CopyLaneThread(BeforeCopy before_copy)
    : before_copy_(std::move(before_copy)), thread_([this] { run(); }) {}

CopyLaneThread::~CopyLaneThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  submitted_signal_.notify_one();
  thread_.join();
}

std::uint64_t CopyLaneThread::submit(void* destination, const void* source, Bytes bytes) {
  STOWAGE_ASSERT(bytes >= 0);
  STOWAGE_ASSERT(bytes == 0 || (destination != nullptr && source != nullptr));
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({destination, source, bytes});
    number = ++submitted_;
  }
  submitted_signal_.notify_one();
  return number;
}

Nanoseconds CopyLaneThread::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  STOWAGE_ASSERT(number <= submitted_);
  if (number <= totals_.copies) return 0;
  const Nanoseconds begin = now_ns();
  completed_signal_.wait(lock, [&] { return number <= totals_.copies; });
  return now_ns() - begin;
}

Nanoseconds CopyLaneThread::drain() {
  std::unique_lock lock(mutex_);
  const std::uint64_t last = submitted_;
  lock.unlock();
  return wait(last);
}

bool CopyLaneThread::done(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return number <= totals_.copies;
}

LaneTotals CopyLaneThread::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

void CopyLaneThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    submitted_signal_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Job job = queue_.front();
    queue_.pop_front();
    const std::uint64_t number = totals_.copies + 1;
    lock.unlock();
    if (before_copy_) before_copy_(number);
    const Nanoseconds begin = now_ns();
    if (job.bytes > 0)
      std::memcpy(job.destination, job.source, static_cast<std::size_t>(job.bytes));
    const Nanoseconds end = now_ns();
    lock.lock();
    totals_.copies = number;
    totals_.bytes += job.bytes;
    totals_.busy_ns += end - begin;
    completed_signal_.notify_all();
  }
}

}  // namespace stowage::executor
