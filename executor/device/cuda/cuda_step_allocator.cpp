#include "executor/device/cuda/cuda_step_allocator.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "executor/device/allocating_op.h"
#include "executor/device/allocation_tag.h"
#include "executor/device/cuda/cuda_check.h"
#include "traces/size_text.h"

namespace stowage::executor {

namespace {

namespace native = c10::cuda::CUDACachingAllocator;

CudaStepAllocator* g_allocator = nullptr;  // set once, with the first device

void release(void* data) {
  g_allocator->raw_delete(data);
}

Bytes total_of(c10::DeviceIndex device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, int{device}), "asking for the GPU's memory");
  return static_cast<Bytes>(properties.totalGlobalMem);
}

std::int64_t number_of(cudaStream_t stream) {
  return reinterpret_cast<std::int64_t>(stream);
}

}  // namespace

CudaStepAllocator::CudaStepAllocator(Native& native, CudaAllocations& allocations,
                                     c10::DeviceIndex device)
    : native_(native),
      allocations_(allocations),
      device_(device),
      total_(total_of(device)),
      share_(native.getMemoryFraction(device)) {}

CudaStepAllocator& CudaStepAllocator::install(CudaAllocations& allocations,
                                              c10::DeviceIndex device) {
  static std::once_flag once;
  std::call_once(once, [&] {
    g_allocator = new CudaStepAllocator(*native::get(), allocations, device);
    native::allocator.store(g_allocator);
    c10::SetAllocator(c10::DeviceType::CUDA, g_allocator, 0);
  });
  return *g_allocator;
}

std::int64_t CudaStepAllocator::current_stream() const {
  // Not PyTorch's number of it: one that came from outside has another one than the pool's.
  return number_of(c10::cuda::getCurrentCUDAStream(device_).stream());
}

std::byte* CudaStepAllocator::from_region(std::size_t bytes) {
  if (!has_regions_ || bytes == 0) return nullptr;
  const StepMemory* const memory = current_memory();
  if (memory == nullptr || c10::cuda::current_device() != device_) return nullptr;
  if (has_pools_ && is_for_a_pool(c10::cuda::getCurrentCUDAStream(device_).stream()))
    return nullptr;
  const auto size = static_cast<Bytes>(bytes);
  const std::int64_t stream = current_stream();
  std::byte* data = nullptr;
  std::optional<std::size_t> unnamed;
  {
    const std::lock_guard lock(mutex_);
    data = regions_.allocate(memory, size, {allocation_tag(), stream}, &unnamed);
  }
  if (unnamed) {
    std::string op = allocating_op();
    const std::lock_guard lock(mutex_);
    regions_.name_unforeseen(memory, *unnamed, std::move(op));
  }
  if (data != nullptr) allocations_.on_untracked_alloc(data, size);
  return data;
}

template <class Allocate>
auto CudaStepAllocator::from_native(Allocate&& allocate) -> decltype(allocate()) {
  if (!has_regions_) return allocate();
  for (;;) {
    try {
      return allocate();
    } catch (const c10::OutOfMemoryError&) {
      if (c10::cuda::current_device() != device_ || !lend()) throw;
    }
  }
}

void* CudaStepAllocator::counted(void* data, std::size_t bytes) {
  const bool counts = !allocations_.is_tracked() && data != nullptr;
  if (counts && c10::cuda::current_device() == device_) {
    allocations_.on_untracked_alloc(data, static_cast<Bytes>(bytes));
  }
  return data;
}

c10::DataPtr CudaStepAllocator::allocate(std::size_t bytes) {
  std::byte* const data = from_region(bytes);
  if (data != nullptr) {
    return {data, data, &release, c10::Device(c10::DeviceType::CUDA, device_)};
  }
  if (allocations_.is_tracked()) {
    return from_native([&] { return native_.allocate(bytes); });
  }
  // Its own deleter would not come by here.
  void* const untracked = counted(from_native([&] { return native_.raw_alloc(bytes); }), bytes);
  return {untracked, untracked, &release,
          c10::Device(c10::DeviceType::CUDA, c10::cuda::current_device())};
}

void* CudaStepAllocator::raw_alloc(std::size_t bytes) {
  std::byte* const data = from_region(bytes);
  if (data != nullptr) return data;
  return counted(from_native([&] { return native_.raw_alloc(bytes); }), bytes);
}

void* CudaStepAllocator::raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) {
  std::byte* const data =
      stream == c10::cuda::getCurrentCUDAStream().stream() ? from_region(bytes) : nullptr;
  if (data != nullptr) return data;
  return counted(from_native([&] { return native_.raw_alloc_with_stream(bytes, stream); }), bytes);
}

bool CudaStepAllocator::is_in_region(const void* data) const {
  if (!has_regions_) return false;
  const std::lock_guard lock(mutex_);
  return regions_.at(data) != nullptr;
}

bool CudaStepAllocator::free_in_region(void* data) {
  if (!is_in_region(data)) return false;
  // Counted ahead of it: the address is somebody else's as soon as the region has it back.
  allocations_.on_untracked_free(data);
  std::shared_ptr<PlannedRegion> over;
  {
    const std::lock_guard lock(mutex_);
    over = regions_.free(data);
    has_regions_ = regions_.size() > 0;
  }
  if (over != nullptr) {
    over.reset();
    limit_native();
  }
  return true;
}

void CudaStepAllocator::raw_delete(void* data) {
  if (free_in_region(data)) return;
  if (!allocations_.is_tracked()) allocations_.on_untracked_free(data);
  native_.raw_delete(data);
}

c10::DeleterFnPtr CudaStepAllocator::raw_deleter() const {
  return &release;
}

void CudaStepAllocator::recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) {
  if (has_regions_ && data.get() != nullptr) {
    const std::lock_guard lock(mutex_);
    if (PlannedRegion* const region = regions_.at(data.get())) {
      region->used_elsewhere(data.get(), number_of(stream.stream()));
      return;
    }
  }
  native_.recordStream(data, stream);
}

void* CudaStepAllocator::getBaseAllocation(void* data, std::size_t* bytes) {
  TORCH_CHECK(
      !is_in_region(data),
      "stowage: a tensor in planned memory cannot be shared with another process; clone it");
  return native_.getBaseAllocation(data, bytes);
}

native::ShareableHandle CudaStepAllocator::shareIpcHandle(void* data) {
  TORCH_CHECK(
      !is_in_region(data),
      "stowage: a tensor in planned memory cannot be shared with another process; clone it");
  return native_.shareIpcHandle(data);
}

void CudaStepAllocator::add_region(std::shared_ptr<PlannedRegion> region) {
  {
    const std::lock_guard lock(mutex_);
    regions_.add(std::move(region));
    has_regions_ = true;
    ++regions_made_;
  }
  limit_native();
}

void CudaStepAllocator::close_region(const PlannedRegion& region) {
  std::shared_ptr<PlannedRegion> closed;
  {
    const std::lock_guard lock(mutex_);
    closed = regions_.close(region);
    has_regions_ = regions_.size() > 0;
  }
  if (closed == nullptr) return;
  closed->give_back_rest();
  closed.reset();
  limit_native();
}

bool CudaStepAllocator::lend() {
  // A graph that is being captured may have addresses of theirs; and nobody can wait then.
  if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) {
    return false;
  }
  // Ahead of the lock, so that it is not held for long.
  if (cudaDeviceSynchronize() != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // somebody else captures
    return false;
  }
  bool lent = false;
  {
    const std::lock_guard lock(mutex_);
    lent = regions_.lend();
  }
  if (lent) limit_native();
  return lent;
}

Status CudaStepAllocator::make_room(Bytes bytes) {
  static_cast<void>(cudaDeviceSynchronize());
  native_.emptyCache({0, 0});
  constexpr std::size_t kAll = 0;  // c10::CachingAllocator::StatType::AGGREGATE
  const Bytes reserved = native_.getDeviceStats(device_).reserved_bytes[kAll].current;
  const std::lock_guard lock(mutex_);
  const Bytes taken = reserved + regions_.bytes();  // of the region itself, what is not lent
  const Bytes limit = limit_of_both();
  if (limit == 0 || taken + bytes <= limit) return Unit{};
  return Error{ErrorCode::condition,
               format_bytes(taken) + " are taken, and the limit is " + format_bytes(limit), "", "",
               ""};
}

Result<c10::DataPtr> CudaStepAllocator::take_lasting(PlannedRegion& region, Bytes bytes) {
  Result<std::byte*> data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    data = region.take_lasting(bytes);
  }
  if (!data) return data.error();
  if (*data == nullptr) return c10::DataPtr();
  allocations_.on_untracked_alloc(*data, bytes);
  return c10::DataPtr(*data, *data, &release, c10::Device(c10::DeviceType::CUDA, device_));
}

Bytes CudaStepAllocator::region_bytes() const {
  const std::lock_guard lock(mutex_);
  return regions_.bytes();
}

Bytes CudaStepAllocator::lent_bytes() const {
  const std::lock_guard lock(mutex_);
  return regions_.lent_bytes();
}

void CudaStepAllocator::set_limit(Bytes limit) {
  {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
  }
  limit_native();
}

Bytes CudaStepAllocator::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_of_both();
}

Bytes CudaStepAllocator::limit_of_both() const {
  if (share_ >= 1.0) return limit_;
  // 0 would be no limit.
  const Bytes of_share =
      std::max<Bytes>(1, static_cast<Bytes>(share_ * static_cast<double>(total_)));
  return limit_ == 0 ? of_share : std::min(limit_, of_share);
}

Bytes CudaStepAllocator::native_limit() const {
  return static_cast<Bytes>(native_.getMemoryFraction(device_) * static_cast<double>(total_));
}

void CudaStepAllocator::setMemoryFraction(double fraction, c10::DeviceIndex device) {
  native_.setMemoryFraction(fraction, device);  // refuses what is no share
  if (device != device_) return;
  {
    const std::lock_guard lock(mutex_);
    share_ = fraction;
  }
  limit_native();
}

double CudaStepAllocator::getMemoryFraction(c10::DeviceIndex device) {
  if (device != device_) return native_.getMemoryFraction(device);
  const std::lock_guard lock(mutex_);
  return share_;
}

void CudaStepAllocator::wait_for_device() {
  check_cuda(cudaDeviceSynchronize(), "waiting for the GPU");
}

void CudaStepAllocator::beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                                            std::function<bool(cudaStream_t)> filter) {
  native_.beginAllocateToPool(device, pool, filter);
  if (device != device_) return;
  const std::lock_guard lock(pools_mutex_);
  pools_.push_back({pool, std::move(filter)});
  has_pools_ = true;
}

void CudaStepAllocator::endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) {
  native_.endAllocateToPool(device, pool);
  if (device != device_) return;
  const std::lock_guard lock(pools_mutex_);
  std::erase_if(pools_, [&](const Pool& each) { return each.id == pool; });
  has_pools_ = !pools_.empty();
}

bool CudaStepAllocator::is_for_a_pool(cudaStream_t stream) const {
  const std::lock_guard lock(pools_mutex_);
  return std::any_of(pools_.begin(), pools_.end(),
                     [&](const Pool& each) { return each.takes(stream); });
}

// It takes the fraction of totalGlobalMem and rounds down; half a byte more keeps the limit whole.
void CudaStepAllocator::limit_native() const {
  const std::lock_guard in_order(limit_mutex_);  // what is set last is what was read last
  Bytes left = 0;
  {
    const std::lock_guard lock(mutex_);
    const Bytes limit = limit_of_both();
    if (limit > 0) left = std::max<Bytes>(1, limit - regions_.bytes());
  }
  const double fraction =
      left == 0 ? 1.0 : (static_cast<double>(left) + 0.5) / static_cast<double>(total_);
  native_.setMemoryFraction(std::min(1.0, fraction), device_);
}

}  // namespace stowage::executor
