// The CPU as a training device: for machines without a GPU, and for tests of everything but CUDA.
// Device memory is what CPU tensors take (TrackedAllocator); two copy threads stand for the copy
// engines and really copy. Compute is synchronous here: whatever was issued is done, so a wait for
// a copy stops the calling thread, and that time is the stall.
//
// The device must exist before the first CPU tensor of the process: memory taken earlier is not
// counted. Allocations and listener are the process's, copy lanes the object's, so several objects
// share the first and not the second. All methods but memory() belong to the compute thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "executor/device/copy_lane_thread.h"
#include "executor/device/device.h"
#include "executor/device/tracked_allocator.h"
#include "traces/result.h"

namespace stowage::executor {

class CpuDevice final : public Device {
 public:
  struct Options {
    // Runs on the copy thread before each copy; for tests that delay copies.
    std::function<void(CopyLane lane, std::uint64_t number)> before_copy;
  };

  // Installs the tracked allocator and starts the copy threads. Errors:
  // TrackedAllocator::install().
  [[nodiscard]] static Result<std::unique_ptr<CpuDevice>> create(Options options);

  [[nodiscard]] c10::Device torch_device() const override;
  void describe(Environment& environment) const override;
  [[nodiscard]] MemoryStats memory() const override;
  void reset_peak() override;
  void set_listener(AllocationListener* listener) override;
  [[nodiscard]] std::int64_t allocation_serial(const void* data) const override;
  [[nodiscard]] std::int64_t next_serial() const override;
  [[nodiscard]] std::vector<LiveAllocation> live_allocations() const override;
  [[nodiscard]] std::optional<simulator::ObservedAllocator> observed_allocator() const override {
    return std::nullopt;
  }
  [[nodiscard]] SetupHistory setup_history() const override { return {}; }
  void begin_first_step() override {}
  void end_setup() override {}
  [[nodiscard]] Result<HostArena> host_arena(Bytes bytes) override;
  [[nodiscard]] simulator::PageChoice page_choice() const override;
  [[nodiscard]] Result<std::unique_ptr<StepMemory>> step_memory(
      simulator::MemoryLayout layout) override;
  void release_cache() override {}
  std::vector<LibraryWorkspace> release_workspaces() override { return {}; }
  void take_workspaces(const std::vector<LibraryWorkspace>& /*workspaces*/) override {}
  [[nodiscard]] Bytes used_bytes() const override { return -1; }
  [[nodiscard]] at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override;
  void begin_step() override {}  // no streams
  void end_step() override {}
  void check_stream() const override {}
  CopyTicket copy_async(CopyLane lane, void* destination, const void* source, Bytes bytes) override;
  void wait(CopyTicket ticket) override;
  void copy_on_compute(void* destination, const void* source, Bytes bytes) override;
  void fill_on_compute(void* destination, std::byte value, Bytes bytes) override;
  void wait_blocking(CopyTicket ticket) override;
  void wait_elsewhere(CopyTicket ticket) override;
  void stand_still(const std::function<void()>& wait) override;
  void synchronize_compute() override {}  // whatever was issued is done
  void synchronize() override;
  void time_stalls(bool /*timed*/) override {}
  [[nodiscard]] Nanoseconds stall_ns() const override { return stall_ns_; }
  [[nodiscard]] std::vector<std::string> warnings() const override { return {}; }

  void set_memory_limit(Bytes limit) override;
  // What a lane has copied since the device was made.
  [[nodiscard]] LaneTotals lane_totals(CopyLane lane) const;

 private:
  CpuDevice(TrackedAllocator& allocator, const Options& options);
  [[nodiscard]] CopyLaneThread& lane(CopyLane lane);

  TrackedAllocator& allocator_;
  CopyLaneThread d2h_;
  CopyLaneThread h2d_;
  Nanoseconds stall_ns_ = 0;
};

// The process's own device without options, made by the first call and never destroyed (tensors in
// static objects die after main).
[[nodiscard]] Result<CpuDevice*> cpu_device();

}  // namespace stowage::executor
