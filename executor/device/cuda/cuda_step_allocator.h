// CudaStepAllocator: PyTorch's CUDA allocator, with the memory of planned steps ahead of it. What
// such a step allocates on its compute stream is handed out from its region; everything else is the
// native allocator's, untouched, what goes into a pool of the user's (a CUDA graph's, a MemPool)
// among it. Installed once in a process, and never destroyed; tensors that were there before stay
// the native allocator's.
//
// The native allocator's statistics, snapshot and tracker do not know regions; CudaAllocations
// counts both. A tensor in a region cannot be shared with another process, and is no part of a CUDA
// graph's pool. Thread-safe. Cost: while a process has no region, one atomic read a call.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_allocations.h"
#include "executor/device/planned_regions.h"

namespace stowage::executor {

class CudaStepAllocator final : public c10::cuda::CUDACachingAllocator::CUDAAllocator,
                                public RegionHost {
 public:
  using Native = c10::cuda::CUDACachingAllocator::CUDAAllocator;
  using CUDAAllocator::recordStream;

  // In the place of PyTorch's own, or returns what is there. `allocations`: of that device,
  // attached to it, whose native allocator is initialized.
  static CudaStepAllocator& install(CudaAllocations& allocations, c10::DeviceIndex device);

  // Bytes that both may take from the driver together; 0 = no limit but the user's own, a share of
  // the device (torch.cuda.set_per_process_memory_fraction), which holds beside it for both, too.
  void set_limit(Bytes limit);
  // The smaller of the two; 0 = none.
  [[nodiscard]] Bytes limit() const;
  // What the native allocator may take of it now.
  [[nodiscard]] Bytes native_limit() const;
  // Of all regions that there are, and how often one was made.
  [[nodiscard]] Bytes region_bytes() const;
  // Given back between steps; their plans take them again.
  [[nodiscard]] Bytes lent_bytes() const;
  [[nodiscard]] std::int64_t regions_made() const { return regions_made_; }
  [[nodiscard]] bool has_regions() const { return has_regions_; }

  // RegionHost.
  void add_region(std::shared_ptr<PlannedRegion> region) override;
  void close_region(const PlannedRegion& region) override;
  [[nodiscard]] Result<c10::DataPtr> take_lasting(PlannedRegion& region, Bytes bytes) override;
  [[nodiscard]] bool lend() override;
  [[nodiscard]] Status make_room(Bytes bytes) override;
  void regions_changed() override { limit_native(); }
  void wait_for_device() override;
  [[nodiscard]] std::mutex& region_lock() override { return mutex_; }
  [[nodiscard]] std::int64_t current_stream() const override;

  // What a step allocates, and what becomes of it.
  c10::DataPtr allocate(std::size_t bytes) override;
  void* raw_alloc(std::size_t bytes) override;
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override;
  void raw_delete(void* data) override;
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override;
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override;
  void* getBaseAllocation(void* data, std::size_t* bytes) override;
  c10::cuda::CUDACachingAllocator::ShareableHandle shareIpcHandle(void* data) override;

  // As the native one has them.
  void copy_data(void* to, const void* from, std::size_t bytes) const override;
  bool is_simple_data_ptr(const c10::DataPtr& data) const override;
  bool initialized() override;
  void emptyCache(c10::MempoolId_t pool) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override;
  void init(int device_count) override;
  double getMemoryFraction(c10::DeviceIndex device) override;
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override;
  std::vector<c10::cuda::CUDACachingAllocator::StreamSegmentSize> getExpandableSegmentSizes(
      c10::DeviceIndex device) override;
  void enable(bool value) override;
  bool isEnabled() const override;
  void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override;
  c10::cuda::CUDACachingAllocator::SnapshotInfo snapshot(c10::MempoolId_t pool,
                                                         bool include_traces) override;
  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override;
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          std::shared_ptr<CUDAAllocator> allocator) override;
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use_on_oom) override;
  void setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override;
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
  bool isHistoryEnabled() override;
  void recordHistory(bool enabled, c10::CachingDeviceAllocator::CreateContextFn recorder,
                     std::size_t most, c10::CachingDeviceAllocator::RecordContext when, bool clear,
                     const std::vector<std::string>& skipped) override;
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& text) override;
  void pushCompileContext(std::string& text) override;
  void popCompileContext() override;
  void setUserMetadata(const std::string& text) override;
  std::string getUserMetadata() override;
  void attachOutOfMemoryObserver(
      c10::cuda::CUDACachingAllocator::OutOfMemoryObserver observer) override;
  void attachAllocatorTraceTracker(
      c10::CachingDeviceAllocator::AllocatorTraceTracker tracker) override;
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex to) override;
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes, cudaStream_t stream, bool peers) override;
  std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> getCheckpointState(
      c10::DeviceIndex device, c10::MempoolId_t pool) override;
  c10::cuda::CUDACachingAllocator::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device,
      std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state) override;
  std::string name() override;

 private:
  // That allocations go to while its filter has their stream.
  struct Pool {
    c10::MempoolId_t id;
    std::function<bool(cudaStream_t)> takes;
  };

  CudaStepAllocator(Native& native, CudaAllocations& allocations, c10::DeviceIndex device);
  // From the calling thread's region, or null.
  [[nodiscard]] std::byte* from_region(std::size_t bytes);
  // What the native allocator gives; where it has nothing left, once regions have lent their pages.
  template <class Allocate>
  auto from_native(Allocate&& allocate) -> decltype(allocate());
  // Of an allocator without a tracker: what it gave, if it is of the device.
  void* counted(void* data, std::size_t bytes);
  // Whether it lies in a region; then it is freed.
  bool free_in_region(void* data);
  [[nodiscard]] bool is_in_region(const void* data) const;
  void limit_native() const;
  // Whether the calling thread allocates into a pool of the user's on this stream.
  [[nodiscard]] bool is_for_a_pool(cudaStream_t stream) const;
  // Under the lock.
  [[nodiscard]] Bytes limit_of_both() const;

  Native& native_;
  CudaAllocations& allocations_;
  const c10::DeviceIndex device_;
  std::atomic<bool> has_regions_{false};
  std::atomic<std::int64_t> regions_made_{0};
  mutable std::mutex limit_mutex_;  // held while the native allocator's limit is read and set
  const Bytes total_;               // of the device
  mutable std::mutex mutex_;        // guards the three below
  PlannedRegions regions_;
  Bytes limit_ = 0;
  double share_;  // of the device: the user's limit
  mutable std::mutex pools_mutex_;
  std::vector<Pool> pools_;  // guarded by it
  std::atomic<bool> has_pools_{false};
};

}  // namespace stowage::executor
