#include "executor/device/cpu_device.h"

#include <ATen/EmptyTensor.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "executor/device/allocation_tag.h"
#include "executor/device/file_pages.h"
#include "executor/device/region_step_memory.h"
#include "simulator/placement/memory_layout.h"

namespace stowage::executor {

namespace {

// Linux lets a process have 65,530 by default.
constexpr std::int64_t kMostMappings = 30'000;

CopyLaneThread::BeforeCopy bind(const CpuDevice::Options& options, CopyLane lane) {
  if (!options.before_copy) return {};
  return [hook = options.before_copy, lane](std::uint64_t number) { hook(lane, number); };
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? line : line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

CpuDevice::CpuDevice(TrackedAllocator& allocator, const Options& options)
    : allocator_(allocator),
      d2h_(bind(options, CopyLane::d2h)),
      h2d_(bind(options, CopyLane::h2d)) {}

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(Options options) {
  Result<TrackedAllocator*> allocator = TrackedAllocator::install();
  if (!allocator) return allocator.error();
  return std::unique_ptr<CpuDevice>(new CpuDevice(**allocator, options));
}

c10::Device CpuDevice::torch_device() const {
  return c10::Device(c10::DeviceType::CPU);
}

void CpuDevice::describe(Environment& environment) const {
  environment.device = "cpu";
  environment.device_name = processor_name();
  environment.allocator = "tracked";
}

MemoryStats CpuDevice::memory() const {
  return allocator_.stats();
}

void CpuDevice::reset_peak() {
  allocator_.reset_peak();
  stall_ns_ = 0;
}

void CpuDevice::set_listener(AllocationListener* listener) {
  allocator_.set_listener(listener);
}

std::int64_t CpuDevice::allocation_serial(const void* data) const {
  return allocator_.serial_of(data);
}

std::int64_t CpuDevice::next_serial() const {
  return allocator_.next_serial();
}

std::vector<LiveAllocation> CpuDevice::live_allocations() const {
  return allocator_.live_allocations();
}

at::Tensor CpuDevice::allocate_buffer(Bytes bytes, std::int64_t tag) {
  const AllocationTagGuard guard(tag);
  // Below the dispatcher: no observer, no autograd, and no deterministic fill.
  return at::Tensor(at::detail::empty_cpu({bytes}, at::TensorOptions(at::kByte)));
}

Result<HostArena> CpuDevice::host_arena(Bytes bytes) {
  return HostArena::create(bytes);
}

simulator::PageChoice CpuDevice::page_choice() const {
  return {static_cast<Bytes>(sysconf(_SC_PAGESIZE)), kMostMappings};
}

Result<std::unique_ptr<StepMemory>> CpuDevice::step_memory(simulator::MemoryLayout layout) {
  Result<std::unique_ptr<PagedMemory>> pages =
      FilePages::create(layout.placement.bytes(), layout.region_bytes);
  if (!pages) return pages.error();
  return std::unique_ptr<StepMemory>(std::make_unique<RegionStepMemory>(
      allocator_, std::make_shared<PlannedRegion>(std::move(layout), std::move(pages).value())));
}

CopyLaneThread& CpuDevice::lane(CopyLane lane) {
  return lane == CopyLane::d2h ? d2h_ : h2d_;
}

CopyTicket CpuDevice::copy_async(CopyLane lane, void* destination, const void* source,
                                 Bytes bytes) {
  return {lane, this->lane(lane).submit(destination, source, bytes)};
}

void CpuDevice::wait(CopyTicket ticket) {
  stall_ns_ += lane(ticket.lane).wait(ticket.number);
}

void CpuDevice::copy_on_compute(void* destination, const void* source, Bytes bytes) {
  if (bytes > 0) std::memcpy(destination, source, static_cast<std::size_t>(bytes));
}

void CpuDevice::fill_on_compute(void* destination, std::byte value, Bytes bytes) {
  if (bytes > 0) {
    std::memset(destination, std::to_integer<int>(value), static_cast<std::size_t>(bytes));
  }
}

void CpuDevice::wait_blocking(CopyTicket ticket) {
  wait(ticket);
}

void CpuDevice::wait_elsewhere(CopyTicket ticket) {
  static_cast<void>(lane(ticket.lane).wait(ticket.number));
}

void CpuDevice::stand_still(const std::function<void()>& wait) {
  const auto begin = std::chrono::steady_clock::now();
  wait();
  stall_ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

void CpuDevice::synchronize() {
  d2h_.drain();
  h2d_.drain();
}

void CpuDevice::set_memory_limit(Bytes limit) {
  allocator_.set_limit(limit);
}

LaneTotals CpuDevice::lane_totals(CopyLane lane) const {
  return lane == CopyLane::d2h ? d2h_.totals() : h2d_.totals();
}

Result<CpuDevice*> cpu_device() {
  static const Result<CpuDevice*> device = []() -> Result<CpuDevice*> {
    Result<std::unique_ptr<CpuDevice>> made = CpuDevice::create({});
    if (!made) return made.error();
    return std::move(made).value().release();
  }();
  return device;
}

}  // namespace stowage::executor
