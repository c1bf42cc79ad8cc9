// What is handed out on one GPU, counted and numbered: the trace tracker of PyTorch's caching
// allocator tells every allocation, free and segment, in program order, on the thread that asks.
// cudaMallocAsync has no tracker: CudaStepAllocator, which stands ahead of it, tells what it hands
// out.
//
// The tracker runs under the allocator's lock and cannot be detached, so there is one of these in a
// process, and it never dies. Nothing here calls the allocator or CUDA. A block that another stream
// used is freed later than asked for (record_stream); its free is reported when asked for, which is
// program order, and counted as delayed. Cost: about 100 ns an event. Thread-safe.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "executor/device/block_table.h"
#include "executor/device/device.h"
#include "traces/result.h"

namespace stowage::executor {

class CudaAllocations {
 public:
  // Attaches to the allocator, or returns what is attached. Needs a started CUDA. What is live by
  // then is adopted from the allocator's snapshot, and setup_history() begins with it. Errors
  // (environment): another allocator than PyTorch's native one and cudaMallocAsync, or that one
  // with tensors that exist already; another device than the first call's.
  [[nodiscard]] static Result<CudaAllocations*> install(c10::DeviceIndex device);

  // Knows only what it is told; attached to nothing.
  explicit CudaAllocations(c10::DeviceIndex device) : device_(device) {}
  void on_entry(const c10::CachingDeviceAllocator::TraceEntry& entry);
  // Live since before the first entry, as of a snapshot behind it; what was told of already, or has
  // been freed since, is left out.
  struct Older {
    const void* address = nullptr;
    Bytes bytes = 0;  // requested
  };
  void adopt(const std::vector<Older>& live);
  // Nothing will be adopted any more.
  void forget_unknown_frees();
  // What no tracker sees: memory of a planned step, and all of an allocator without one. Of what is
  // not known nothing is freed.
  void on_untracked_alloc(const void* address, Bytes bytes) { on_alloc(address, bytes); }
  void on_untracked_free(const void* address);
  // The allocator has a tracker, which tells what it hands out.
  [[nodiscard]] bool is_tracked() const { return is_tracked_; }
  // Device::other_allocator().
  [[nodiscard]] const std::string& other_allocator() const { return other_allocator_; }

  [[nodiscard]] Bytes requested() const;  // live, by our own count
  // Likewise, each rounded up to 512 bytes; and the most that both were since reset_peaks().
  struct Counted {
    Bytes requested = 0;
    Bytes peak_requested = 0;
    Bytes rounded = 0;
    Bytes peak_rounded = 0;
  };
  [[nodiscard]] Counted counted() const;
  void reset_peaks();
  [[nodiscard]] std::int64_t next_serial() const;
  [[nodiscard]] std::int64_t serial_of(const void* data) const;
  [[nodiscard]] std::vector<LiveAllocation> live() const;
  // Writes number, size and tag into each block that is a live allocation. Cost: O(blocks).
  void name(std::vector<simulator::ObservedBlock>& blocks) const;
  [[nodiscard]] std::int64_t driver_allocations() const;
  // Frees that the allocator put off because another stream had used the block, until after the
  // next allocation or free (one that was done by then changed nothing).
  [[nodiscard]] std::int64_t delayed_frees() const;
  void set_listener(AllocationListener* listener);
  [[nodiscard]] SetupHistory setup_history() const;
  void begin_first_step();
  void end_setup();

 private:
  using TraceEntry = c10::CachingDeviceAllocator::TraceEntry;

  void count_if_delayed();                       // under the lock
  void add_setup(const AllocationEvent& event);  // likewise
  void on_alloc(const void* address, Bytes bytes);
  void on_free(const void* address);
  // Under the lock. Nothing where it is not known.
  [[nodiscard]] std::optional<AllocationEvent> count_free(const void* address);
  void on_freed(const void* address);

  const c10::DeviceIndex device_;
  bool is_tracked_ = true;
  std::string other_allocator_;
  std::atomic<AllocationListener*> listener_{nullptr};
  mutable std::mutex mutex_;  // guards everything below
  BlockTable blocks_;
  Counted counted_;
  std::int64_t next_serial_ = 0;
  std::int64_t driver_allocations_ = 0;
  std::int64_t delayed_frees_ = 0;
  const void* being_freed_ = nullptr;  // asked for, not completed
  bool notes_unknown_frees_ = true;
  std::unordered_set<const void*> unknown_frees_;
  bool in_setup_ = true;
  bool in_first_step_ = false;
  SetupHistory setup_;
};

// Errors (environment): variables that switch the allocator to one that cannot be counted.
[[nodiscard]] Status check_allocator_environment();

// The allocator and its settings, for Environment::allocator.
[[nodiscard]] std::string allocator_text();

}  // namespace stowage::executor
