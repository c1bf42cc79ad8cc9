#include "executor/device/cuda/cuda_device.h"

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/EmptyTensor.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "executor/device/allocation_tag.h"
#include "executor/device/cuda/cuda_check.h"
#include "executor/device/cuda/cuda_pages.h"
#include "executor/device/first_line.h"
#include "executor/device/region_step_memory.h"
#include "simulator/placement/memory_layout.h"
#include "traces/size_text.h"

namespace stowage::executor {

namespace {

namespace native = c10::cuda::CUDACachingAllocator;

// Kernels' code is loaded when they are first used.
constexpr Bytes kLeftToOthers = Bytes{256} << 20;
constexpr decltype(native::SegmentInfo::owner_private_pool_id) kNoPool{0, 0};
constexpr std::size_t kAll = 0;  // c10::CachingAllocator::StatType::AGGREGATE

void unpin(void* data) {
  // At the end of the process the driver has done it already.
  if (cudaHostUnregister(data) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

struct WorkspaceKind {
  LibraryWorkspace::Library library;
  at::cuda::WorkspaceMapWithMutex& kept;  // by handle and stream
  std::size_t bytes;
};

std::array<WorkspaceKind, 2> workspace_kinds() {
  using Library = LibraryWorkspace::Library;
  return {{{Library::cublas, at::cuda::cublas_handle_stream_to_workspace(),
            at::cuda::getChosenWorkspaceSize()},
           {Library::cublas_light, at::cuda::cublaslt_handle_stream_to_workspace(),
            at::cuda::getCUDABlasLtWorkspaceSize()}}};
}

Error no_device(const std::string& why) {
  return {ErrorCode::environment, "no CUDA device: " + why, "", "",
          "run it where there is a GPU, or record with --device cpu"};
}

}  // namespace

Status cuda_present() {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    // Without any driver CUDA calls it too old.
    int driver = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    return no_device(driver == 0 ? "there is no NVIDIA driver" : cudaGetErrorString(status));
  }
  if (count == 0) return no_device("the driver lists none");
  return Unit{};
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(Options options) {
  if (Status status = check_allocator_environment(); !status) return status.error();
  // cuBLAS and PyTorch read it when they start; a setting of the user's stays.
  if (native::allocator.load() == nullptr || !native::get()->initialized()) {
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  }
  if (Status status = cuda_present(); !status) return status.error();
  try {
    at::globalContext().lazyInitDevice(at::kCUDA);
    const c10::DeviceIndex index = c10::cuda::current_device();
    check_cuda(cudaFree(nullptr), "starting CUDA");  // makes the context
    // Those of a process that computed before are made again, counted then, when they are needed.
    at::cuda::clearCublasWorkspaces();
    Result<CudaAllocations*> allocations = CudaAllocations::install(index);
    if (!allocations) return allocations.error();
    CudaStepAllocator& allocator = CudaStepAllocator::install(**allocations, index);
    return std::unique_ptr<CudaDevice>(
        new CudaDevice(index, **allocations, allocator, std::move(options)));
  } catch (const c10::Error& error) {
    return no_device(first_line(error.what_without_backtrace()));
  }
}

CudaDevice::CudaDevice(c10::DeviceIndex index, CudaAllocations& allocations,
                       CudaStepAllocator& allocator, Options options)
    : index_(index),
      refuse_pinning_(options.refuse_pinning),
      allocations_(allocations),
      allocator_(allocator),
      lanes_(std::move(options.delay)),
      driver_allocations_before_(allocations.driver_allocations()) {}

CudaDevice::~CudaDevice() {
  static_cast<void>(cudaDeviceSynchronize());
}

c10::Device CudaDevice::torch_device() const {
  return {c10::DeviceType::CUDA, index_};
}

void CudaDevice::describe(Environment& environment) const {
  environment.device = "cuda";
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, int{index_}), "asking for the GPU's properties");
  environment.device_name = properties.name;
  int version = 0;
  check_cuda(cudaRuntimeGetVersion(&version), "asking for the CUDA version");
  environment.cuda = version_text(version);
  environment.driver = driver_text();
  environment.allocator = allocator_text();
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  environment.device_memory = static_cast<Bytes>(total);
  // What is used and not the allocator's: the context, the kernels' code, and whatever other
  // programs use of this GPU.
  environment.context_bytes =
      std::max<Bytes>(0, static_cast<Bytes>(total - free) - memory().reserved);
}

MemoryStats CudaDevice::memory() const {
  const native::DeviceStats device = native::getDeviceStats(index_);
  MemoryStats stats;
  stats.requested = device.requested_bytes[kAll].current;
  stats.peak_requested = device.requested_bytes[kAll].peak;
  stats.active = device.active_bytes[kAll].current;
  stats.peak_active = device.active_bytes[kAll].peak;
  stats.reserved = device.reserved_bytes[kAll].current;
  stats.peak_reserved = device.reserved_bytes[kAll].peak;
  if (allocator_.has_regions() || !allocations_.is_tracked()) {
    const CudaAllocations::Counted counted = allocations_.counted();
    stats.requested = counted.requested;
    stats.peak_requested = counted.peak_requested;
    if (allocator_.has_regions()) {
      stats.active = counted.rounded;
      stats.peak_active = counted.peak_rounded;
    }
    stats.reserved += allocator_.region_bytes();
    stats.peak_reserved += allocator_.region_bytes();
  }
  stats.allocations = allocations_.next_serial();
  if (allocations_.is_tracked()) {
    stats.driver_allocations =
        allocations_.driver_allocations() - driver_allocations_before_ + allocator_.regions_made();
  }
  stats.pinned_blocks =
      pinned_blocks_.load() + at::getHostAllocator(at::kCUDA)->get_stats().num_host_alloc;
  return stats;
}

void CudaDevice::reset_peak() {
  native::resetPeakStats(index_);
  allocations_.reset_peaks();
  lanes_.reset_stall();
}

void CudaDevice::set_memory_limit(Bytes limit) {
  allocator_.set_limit(std::max<Bytes>(limit, 0));
}

void CudaDevice::set_listener(AllocationListener* listener) {
  allocations_.set_listener(listener);
}

std::int64_t CudaDevice::allocation_serial(const void* data) const {
  return allocations_.serial_of(data);
}

std::int64_t CudaDevice::next_serial() const {
  return allocations_.next_serial();
}

std::vector<LiveAllocation> CudaDevice::live_allocations() const {
  return allocations_.live();
}

std::optional<simulator::ObservedAllocator> CudaDevice::observed_allocator() const {
  if (!other_allocator().empty()) return std::nullopt;
  const cudaStream_t stream = compute();
  simulator::ObservedAllocator observed;
  // The tracker's lock is not held here: the snapshot is an entry of the tracker as well.
  std::vector<native::SegmentInfo> segments =
      native::snapshot({0, 0}, /*include_traces=*/false).segments;
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (const native::SegmentInfo& segment : segments) {
    if (segment.device != index_ || segment.stream != stream) continue;
    if (segment.owner_private_pool_id != kNoPool) continue;
    auto address = static_cast<Bytes>(segment.address);
    for (const native::BlockInfo& block : segment.blocks) {
      if (block.active != block.allocated) return std::nullopt;  // another stream uses it still
      simulator::ObservedBlock& each = observed.blocks.emplace_back();
      each.address = address;
      each.size = static_cast<Bytes>(block.size);
      each.begins_segment = &block == segment.blocks.data();
      each.small = !segment.is_large;
      each.allocated = block.allocated;
      address += each.size;
    }
    if (address != static_cast<Bytes>(segment.address + segment.total_size)) return std::nullopt;
  }
  allocations_.name(observed.blocks);
  observed.room = room();
  return observed;
}

Bytes CudaDevice::room() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  // The native allocator's own limit, without what planned memory has; that takes back what it
  // lent.
  const Bytes reserved = native::getDeviceStats(index_).reserved_bytes[kAll].current;
  const Bytes lent = allocator_.lent_bytes();
  const Bytes below_limit = allocator_.native_limit() - reserved - lent;
  const Bytes below_end = static_cast<Bytes>(free) - lent - kLeftToOthers;
  return std::max<Bytes>(0, std::min(below_end, below_limit));
}

SetupHistory CudaDevice::setup_history() const {
  return allocations_.setup_history();
}

void CudaDevice::begin_first_step() {
  allocations_.begin_first_step();
}

void CudaDevice::end_setup() {
  allocations_.end_setup();
}

simulator::PageChoice CudaDevice::page_choice() const {
  return simulator::kDevicePages;
}

Result<std::unique_ptr<StepMemory>> CudaDevice::step_memory(simulator::MemoryLayout layout) {
  const Bytes bytes = layout.placement.bytes();
  const Bytes limit = allocator_.limit();
  const auto fits = [&] { return limit == 0 || bytes + allocator_.region_bytes() <= limit; };
  while (!fits()) {
    if (allocator_.lend()) continue;
    const Bytes others = allocator_.region_bytes();
    return Error{ErrorCode::condition,
                 "planned memory of " + format_bytes(bytes) +
                     (others > 0 ? " beside " + format_bytes(others) + " of other plans" : "") +
                     " is above the limit of " + format_bytes(limit),
                 "", "", "plan for less, or allow more"};
  }
  Result<std::unique_ptr<PagedMemory>> pages = CudaPages::create(index_, layout);
  if (!pages) return pages.error();
  return std::unique_ptr<StepMemory>(std::make_unique<RegionStepMemory>(
      allocator_, std::make_shared<PlannedRegion>(std::move(layout), std::move(pages).value())));
}

void CudaDevice::release_cache() {
  synchronize();
  native::emptyCache();
}

std::vector<LibraryWorkspace> CudaDevice::release_workspaces() {
  synchronize();
  std::vector<LibraryWorkspace> workspaces;
  for (const WorkspaceKind& kind : workspace_kinds()) {
    const std::shared_lock lock(kind.kept.mutex);
    for (const auto& [key, memory] : kind.kept.map) {
      if (memory.device() != torch_device()) continue;
      workspaces.push_back({kind.library, std::get<0>(key), std::get<1>(key)});
    }
  }
  at::cuda::clearCublasWorkspaces();
  return workspaces;
}

std::vector<std::int64_t> CudaDevice::workspace_serials() const {
  std::vector<std::int64_t> serials;
  for (const WorkspaceKind& kind : workspace_kinds()) {
    const std::shared_lock lock(kind.kept.mutex);
    for (const auto& [key, memory] : kind.kept.map) {
      const std::int64_t serial = allocations_.serial_of(memory.get());
      if (serial >= 0) serials.push_back(serial);
    }
  }
  return serials;
}

void CudaDevice::take_workspaces(const std::vector<LibraryWorkspace>& workspaces) {
  const c10::cuda::CUDAGuard on_this(index_);
  for (const WorkspaceKind& kind : workspace_kinds()) {
    const std::unique_lock lock(kind.kept.mutex);
    for (const LibraryWorkspace& each : workspaces) {
      if (each.library != kind.library) continue;
      const auto [at, is_new] =
          kind.kept.map.try_emplace(std::make_tuple(each.handle, each.stream));
      if (!is_new) continue;
      const c10::cuda::CUDAStreamGuard on_its_stream(
          c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(each.stream), index_));
      try {
        at->second = at::cuda::getCUDADeviceAllocator()->allocate(kind.bytes);
      } catch (const c10::OutOfMemoryError&) {
        kind.kept.map.erase(at);  // the library takes it when it is needed
      }
    }
  }
}

Bytes CudaDevice::used_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return static_cast<Bytes>(total - free);
}

Result<HostArena> CudaDevice::host_arena(Bytes bytes) {
  Result<HostArena> arena = HostArena::create(bytes);
  if (!arena || bytes == 0) return arena;
  const cudaError_t status = refuse_pinning_
                                 ? cudaErrorMemoryAllocation
                                 : cudaHostRegister(arena->data(), static_cast<std::size_t>(bytes),
                                                    cudaHostRegisterDefault);
  if (status != cudaSuccess) {
    const std::lock_guard lock(mutex_);
    warnings_.push_back(
        cuda_error(status, std::to_string(bytes) +
                               " bytes of host memory could not be pinned; copies are slow and "
                               "do not overlap with compute")
            .message);
    return arena;
  }
  arena->set_pinned(&unpin);
  ++pinned_blocks_;
  return arena;
}

at::Tensor CudaDevice::allocate_buffer(Bytes bytes, std::int64_t tag) {
  static_cast<void>(compute());
  const AllocationTagGuard guard(tag);
  // Below the dispatcher: no observer, no autograd, and no deterministic fill.
  return at::Tensor(at::detail::empty_cuda({bytes}, at::kByte, torch_device(), std::nullopt));
}

void CudaDevice::begin_step() {
  const std::lock_guard lock(mutex_);
  step_streams_.push_back(c10::cuda::getCurrentCUDAStream(index_));
}

void CudaDevice::end_step() {
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(index_);
  const std::lock_guard lock(mutex_);
  if (step_streams_.empty()) return;
  const auto of_step = std::find(step_streams_.begin(), step_streams_.end(), current);
  step_streams_.erase(of_step == step_streams_.end() ? std::prev(of_step) : of_step);
}

cudaStream_t CudaDevice::compute() const {
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(index_);
  const std::lock_guard lock(mutex_);
  const auto& of_steps = step_streams_;
  TORCH_CHECK(
      of_steps.empty() || std::find(of_steps.begin(), of_steps.end(), current) != of_steps.end(),
      "stowage: a planned step must stay on one CUDA stream; it began on stream ",
      of_steps.empty() ? 0 : of_steps.back().id(), " and now comes from stream ", current.id());
  return current.stream();
}

CopyTicket CudaDevice::copy_async(CopyLane lane, void* destination, const void* source,
                                  Bytes bytes) {
  return lanes_.copy(lane, compute(), destination, source, bytes);
}

void CudaDevice::wait(CopyTicket ticket) {
  lanes_.wait(ticket, compute());
}

void CudaDevice::copy_on_compute(void* destination, const void* source, Bytes bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(destination, source, static_cast<std::size_t>(bytes),
                             cudaMemcpyDefault, compute()),
             "a copy on the compute stream");
}

void CudaDevice::fill_on_compute(void* destination, std::byte value, Bytes bytes) {
  if (bytes == 0) return;
  const int byte = std::to_integer<int>(value);
  const auto size = static_cast<std::size_t>(bytes);
  cudaPointerAttributes attributes{};
  check_cuda(cudaPointerGetAttributes(&attributes, destination), "asking what memory this is");
  // Pinned host memory has an address for the GPU as well; pageable memory has none.
  if (attributes.devicePointer == nullptr) {
    synchronize_compute();
    std::memset(destination, byte, size);
    return;
  }
  check_cuda(cudaMemsetAsync(attributes.devicePointer, byte, size, compute()),
             "a fill on the compute stream");
}

void CudaDevice::wait_blocking(CopyTicket ticket) {
  lanes_.wait_blocking(ticket);
}

void CudaDevice::wait_elsewhere(CopyTicket ticket) {
  lanes_.wait_elsewhere(ticket);
}

void CudaDevice::stand_still(const std::function<void()>& wait) {
  lanes_.stand_still(wait, compute());
}

void CudaDevice::synchronize_compute() {
  check_cuda(cudaStreamSynchronize(compute()), "waiting for the compute stream");
}

void CudaDevice::synchronize() {
  check_cuda(cudaDeviceSynchronize(), "waiting for the GPU");
  lanes_.drained();
}

std::vector<std::string> CudaDevice::warnings() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all = warnings_;
  if (const std::int64_t delayed = allocations_.delayed_frees(); delayed > 0) {
    all.push_back(std::to_string(delayed) +
                  " blocks of device memory were in use on another stream when they were freed; "
                  "peaks depend on timing then");
  }
  return all;
}

std::string cuda_link_text() {
  std::array<char, 32> address{};
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device) !=
          cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return "";
  }
  std::string folder = "/sys/bus/pci/devices/";
  for (const char* c = address.data(); *c != '\0'; ++c) {
    folder += *c >= 'A' && *c <= 'F' ? static_cast<char>(*c - 'A' + 'a') : *c;
  }
  std::string speed;
  std::string lanes;
  std::ifstream speed_file(folder + "/current_link_speed");
  std::ifstream lanes_file(folder + "/current_link_width");
  if (!std::getline(speed_file, speed) || !std::getline(lanes_file, lanes)) return "";
  return speed + ", " + lanes + " lanes";
}

Result<CudaDevice*> cuda_device() {
  static const Result<CudaDevice*> device = []() -> Result<CudaDevice*> {
    Result<std::unique_ptr<CudaDevice>> made = CudaDevice::create({});
    if (!made) return made.error();
    return std::move(made).value().release();
  }();
  return device;
}

}  // namespace stowage::executor
