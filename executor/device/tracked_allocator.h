// PyTorch's CPU allocator, counted. Every CPU tensor's memory passes through it, so "device bytes"
// of the CPU device are exact: the sizes asked for, no rounding. Scratch memory that MKL, oneDNN or
// OpenMP take for themselves does not come here and is not counted.
//
// Blocks are aligned to 64 bytes, as PyTorch's own are (vectorised kernels behave alike). An
// allocation of zero bytes gives a null pointer and is no event. Costs about 50 ns a call beyond
// malloc. Thread-safe: intra-op workers allocate too.
//
// A planned step's allocations lie where its region has them (executor/device/planned_region.h),
// and are counted like all others.
#pragma once

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/device/block_table.h"
#include "executor/device/device.h"
#include "executor/device/planned_regions.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {

class TrackedAllocator final : public c10::Allocator, public RegionHost {
 public:
  // Installs the process's one tracked allocator as PyTorch's CPU allocator, or returns it when it
  // is there. Must come before the first CPU tensor: blocks handed out earlier are not counted
  // (freeing them stays right). It is never destroyed, since tensors in static objects die after
  // main. Error (environment): another allocator was installed with a higher priority.
  [[nodiscard]] static Result<TrackedAllocator*> install();

  // Throws c10::OutOfMemoryError, as PyTorch does on a GPU, when the system refuses or the limit
  // would be exceeded.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, std::size_t bytes) const override;

  [[nodiscard]] MemoryStats stats() const;
  void reset_peak();
  // Bytes that may be live at once, for running a step under a budget; 0 = no limit (the default).
  void set_limit(Bytes limit);
  // Called outside the allocator's lock. Within a thread the calls are in program order; between
  // threads their order is not that of the serials.
  void set_listener(AllocationListener* listener);
  [[nodiscard]] std::int64_t serial_of(const void* data) const;
  [[nodiscard]] std::int64_t next_serial() const;
  // In order of serial.
  [[nodiscard]] std::vector<LiveAllocation> live_allocations() const;

  void add_region(std::shared_ptr<PlannedRegion> region) override;
  void close_region(const PlannedRegion& region) override;
  [[nodiscard]] Result<c10::DataPtr> take_lasting(PlannedRegion& region, Bytes bytes) override;
  [[nodiscard]] bool lend() override;
  [[nodiscard]] Status make_room(Bytes) override { return Unit{}; }  // the limit is not of pages
  void regions_changed() override {}
  [[nodiscard]] std::mutex& region_lock() override { return mutex_; }
  // That have not gone.
  [[nodiscard]] std::size_t regions() const;
  [[nodiscard]] Bytes region_bytes() const;  // of their pages

 private:
  TrackedAllocator() = default;
  void release(void* data);
  // Under the lock, which it gives up: the block is counted, and the listener told.
  c10::DataPtr given(std::unique_lock<std::mutex>& lock, void* data, Bytes bytes);

  mutable std::mutex mutex_;  // guards everything below but what is atomic
  BlockTable blocks_;
  Bytes current_ = 0;
  Bytes peak_ = 0;
  Bytes limit_ = 0;
  std::int64_t next_serial_ = 0;
  PlannedRegions regions_;
  std::atomic<bool> has_regions_{false};  // so that who has none asks nobody for a current memory
  std::atomic<AllocationListener*> listener_{nullptr};
};

}  // namespace stowage::executor
