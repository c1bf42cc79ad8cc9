// A copy engine in software: one thread that copies bytes, first come first served. Copies carry
// numbers 1, 2, .. in the order of submission and complete in that order. It holds raw pointers
// only and allocates no tensor; the caller keeps both sides of a copy alive until it was waited
// for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "traces/units.h"

namespace stowage::executor {

struct LaneTotals {
  std::uint64_t copies = 0;  // completed
  Bytes bytes = 0;
  Nanoseconds busy_ns = 0;  // time spent copying
};

class CopyLaneThread {
 public:
  // Runs on the copy thread before each copy, with its number; for tests that delay copies.
  using BeforeCopy = std::function<void(std::uint64_t number)>;

  explicit CopyLaneThread(BeforeCopy before_copy = {});
  // Finishes every submitted copy, then joins.
  ~CopyLaneThread();
  CopyLaneThread(const CopyLaneThread&) = delete;
  CopyLaneThread& operator=(const CopyLaneThread&) = delete;

  // Returns the copy's number at once. The copy sees all that the caller wrote before.
  std::uint64_t submit(void* destination, const void* source, Bytes bytes);
  // Until copy `number` (which was submitted) and all before it are done. Returns the time that the
  // caller stood still, 0 when the copy was done already. Number 0 is always done.
  Nanoseconds wait(std::uint64_t number);
  // Until all submitted copies are done.
  Nanoseconds drain();
  [[nodiscard]] bool done(std::uint64_t number) const;
  [[nodiscard]] LaneTotals totals() const;

 private:
  struct Job {
    void* destination;
    const void* source;
    Bytes bytes;
  };

  void run();

  const BeforeCopy before_copy_;
  mutable std::mutex mutex_;  // guards everything below but the thread
  std::condition_variable submitted_signal_;
  std::condition_variable completed_signal_;
  std::deque<Job> queue_;
  std::uint64_t submitted_ = 0;
  LaneTotals totals_;
  bool stopping_ = false;
  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace stowage::executor
