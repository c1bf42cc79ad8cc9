// An NVIDIA GPU as a training device. Device memory is what PyTorch's caching allocator hands out;
// compute is the caller's own stream (the default one or any other), copies run on two streams of
// ours (CudaLanes), and nothing but events orders them. Buffers are allocated on the compute stream
// and freed after compute was made to wait for their copy, so record_stream() is never needed and
// active memory follows program order.
//
// Better made before the first CUDA tensor of the process: of what is there before only size and
// place are known (CudaAllocations::install()). Allocations and listener are the process's, copy
// lanes the object's. Calls may come from the caller's thread and from
// autograd's, one after the other; within a step all on one compute stream (begin_step()).
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "executor/device/cuda/cuda_allocations.h"
#include "executor/device/cuda/cuda_lanes.h"
#include "executor/device/cuda/cuda_step_allocator.h"
#include "executor/device/device.h"
#include "traces/result.h"

namespace stowage::executor {

class CudaDevice final : public Device {
 public:
  struct Options {
    CudaLanes::Delay delay;       // for tests that delay streams
    bool refuse_pinning = false;  // for tests: as if the driver would not pin
  };

  // Starts CUDA on the current GPU and attaches to the allocator. Where CUDA has not started,
  // sets CUBLAS_WORKSPACE_CONFIG to :4096:8 if it is not set, which deterministic cuBLAS needs.
  // Errors (environment): no driver or GPU, an allocator that cannot be followed.
  [[nodiscard]] static Result<std::unique_ptr<CudaDevice>> create(Options options);
  // Waits for everything.
  ~CudaDevice() override;

  [[nodiscard]] c10::Device torch_device() const override;
  void describe(Environment& environment) const override;
  // requested, active and reserved are the allocator's own, pinned_blocks counts PyTorch's too.
  // While there is planned memory: what was handed out of both, rounded up to 512 bytes, is active;
  // and its pages are reserved.
  [[nodiscard]] MemoryStats memory() const override;
  void reset_peak() override;
  // Rounded down to whole segments by the allocator; the context lies outside.
  void set_memory_limit(Bytes limit) override;
  // Called under the allocator's lock.
  void set_listener(AllocationListener* listener) override;
  [[nodiscard]] std::int64_t allocation_serial(const void* data) const override;
  [[nodiscard]] std::int64_t next_serial() const override;
  [[nodiscard]] std::vector<LiveAllocation> live_allocations() const override;
  // Its snapshot, of the calling thread's stream, without private pools.
  [[nodiscard]] std::optional<simulator::ObservedAllocator> observed_allocator() const override;
  [[nodiscard]] SetupHistory setup_history() const override;
  void begin_first_step() override;
  void end_setup() override;

  // Pinned by registering mapped memory: 0.04 to 0.12 s per GB, against 0.6 with cudaHostAlloc.
  // When the driver refuses, the arena is pageable and warnings() says so.
  [[nodiscard]] Result<HostArena> host_arena(Bytes bytes) override;
  [[nodiscard]] simulator::PageChoice page_choice() const override;
  [[nodiscard]] Result<std::unique_ptr<StepMemory>> step_memory(
      simulator::MemoryLayout layout) override;
  void release_cache() override;
  std::vector<LibraryWorkspace> release_workspaces() override;
  [[nodiscard]] std::vector<std::int64_t> workspace_serials() const override;
  void take_workspaces(const std::vector<LibraryWorkspace>& workspaces) override;
  [[nodiscard]] Bytes used_bytes() const override;
  [[nodiscard]] at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override;

  void begin_step() override;
  void end_step() override;
  void check_stream() const override { static_cast<void>(compute()); }
  CopyTicket copy_async(CopyLane lane, void* destination, const void* source, Bytes bytes) override;
  void wait(CopyTicket ticket) override;
  void copy_on_compute(void* destination, const void* source, Bytes bytes) override;
  // Pageable host memory is filled by the CPU after compute was waited for.
  void fill_on_compute(void* destination, std::byte value, Bytes bytes) override;
  void wait_blocking(CopyTicket ticket) override;
  void wait_elsewhere(CopyTicket ticket) override;
  void stand_still(const std::function<void()>& wait) override;
  void synchronize_compute() override;
  void synchronize() override;
  void time_stalls(bool timed) override { lanes_.time_stalls(timed); }
  [[nodiscard]] Nanoseconds stall_ns() const override { return lanes_.stall_ns(); }
  [[nodiscard]] std::vector<std::string> warnings() const override;
  [[nodiscard]] std::string other_allocator() const override {
    return allocations_.other_allocator();
  }

  [[nodiscard]] CudaLaneTotals lane_totals(CopyLane lane) const { return lanes_.totals(lane); }
  [[nodiscard]] std::size_t events_created() const { return lanes_.events_created(); }
  // Live bytes by our own count; equal to memory().requested unless a free is delayed.
  [[nodiscard]] Bytes counted_bytes() const { return allocations_.requested(); }

 private:
  CudaDevice(c10::DeviceIndex index, CudaAllocations& allocations, CudaStepAllocator& allocator,
             Options options);
  // What the allocator may still take from the driver without giving anything back first.
  [[nodiscard]] Bytes room() const;
  // The stream of the calling thread. Throws c10::Error when a step began on another one.
  [[nodiscard]] cudaStream_t compute() const;

  const c10::DeviceIndex index_;
  const bool refuse_pinning_;
  CudaAllocations& allocations_;
  CudaStepAllocator& allocator_;
  mutable CudaLanes lanes_;  // what stalls took is asked of the driver only when told
  std::int64_t driver_allocations_before_ = 0;
  std::atomic<std::int64_t> pinned_blocks_{0};
  mutable std::mutex mutex_;                         // guards the two below
  std::vector<c10::cuda::CUDAStream> step_streams_;  // one a step that goes on
  std::vector<std::string> warnings_;
};

// Whether this machine has a GPU that this build can use; asks the driver and starts nothing. Error
// (environment): "no CUDA device: ..".
[[nodiscard]] Status cuda_present();

// How the current GPU hangs on the host ("32.0 GT/s PCIe, 16 lanes"), as the system tells; an idle
// link may tell a lower speed. Empty when it is not told.
[[nodiscard]] std::string cuda_link_text();

// The process's own device without options, made by the first call and never destroyed (tensors in
// static objects die after main).
[[nodiscard]] Result<CudaDevice*> cuda_device();

}  // namespace stowage::executor
