#include "executor/device/cuda/cuda_allocations.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "executor/device/allocation_tag.h"
#include "executor/device/live_list.h"
#include "simulator/placement/live_ranges.h"

namespace stowage::executor {

namespace {

namespace native = c10::cuda::CUDACachingAllocator;

// Some ten thousand are usual. More are a program that trains and records nothing.
constexpr std::size_t kMostSetupEvents = std::size_t{1} << 20;

constexpr const char* kMallocAsync = "cudaMallocAsync";
constexpr std::array<const char*, 2> kSettings = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};

Error unsupported(const std::string& what, const std::string& hint) {
  return {ErrorCode::environment, what, "", "", hint};
}

// The settings' text without blanks, lower case.
std::string normalized(const char* text) {
  std::string result;
  for (const char c : std::string_view(text)) {
    if (c == ' ' || c == '\t') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

// Those that a stream still uses and nobody holds are not live.
std::vector<CudaAllocations::Older> live_blocks(c10::DeviceIndex device) {
  std::vector<CudaAllocations::Older> live;
  for (const native::SegmentInfo& segment :
       native::snapshot({0, 0}, /*include_traces=*/false).segments) {
    if (segment.device != device) continue;
    auto address = segment.address;
    for (const native::BlockInfo& block : segment.blocks) {
      // A device address; host code only compares it.
      if (block.allocated) {
        live.push_back({reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address)),
                        static_cast<Bytes>(block.requested_size)});
      }
      address += block.size;
    }
  }
  return live;
}

}  // namespace

Status check_allocator_environment() {
  if (std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr) {
    return unsupported(
        "PYTORCH_NO_CUDA_MEMORY_CACHING is set: without the caching allocator no "
        "memory can be predicted",
        "unset PYTORCH_NO_CUDA_MEMORY_CACHING");
  }
  for (const char* const name : kSettings) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string text = normalized(value);
    if (text.find("backend:") != std::string::npos &&
        text.find("backend:native") == std::string::npos &&
        text.find("backend:cudamallocasync") == std::string::npos) {
      return unsupported(std::string(name) + "=" + value +
                             " chooses an allocator that reports no allocations, unlike "
                             "PyTorch's native one and cudaMallocAsync",
                         "leave 'backend' out of " + std::string(name));
    }
  }
  return Unit{};
}

std::string allocator_text() {
  std::string text = native::allocator.load() == nullptr ? "native" : native::get()->name();
  for (const char* const name : kSettings) {
    if (const char* const value = std::getenv(name)) text += std::string(" ") + name + "=" + value;
  }
  if (const char* const value = std::getenv("CUBLAS_WORKSPACE_CONFIG")) {
    text += std::string(" CUBLAS_WORKSPACE_CONFIG=") + value;
  }
  return text;
}

Result<CudaAllocations*> CudaAllocations::install(c10::DeviceIndex device) {
  static std::mutex mutex;
  static CudaAllocations* installed = nullptr;
  const std::lock_guard lock(mutex);
  if (installed != nullptr) {
    if (installed->device_ != device) {
      return unsupported(
          "this process already works on GPU " + std::to_string(int{installed->device_}),
          "one GPU a process");
    }
    return installed;
  }
  const std::string name = native::get()->name();
  if (name != "native" && name != kMallocAsync) {
    return unsupported("the CUDA allocator is '" + name + "', not PyTorch's own",
                       "make the CUDA device before anything that replaces the allocator");
  }
  // Segments without a block count as well: the next allocations may come from them.
  const bool is_used = native::getDeviceStats(device).reserved_bytes[0].current != 0 ||
                       native::getDeviceStats(device).allocation[0].current != 0;
  if (is_used && name == kMallocAsync) {
    return unsupported("CUDA tensors exist already, and cudaMallocAsync does not say which",
                       "make the CUDA device before the first one");
  }
  auto* const made = new CudaAllocations(device);  // the tracker stays attached for good
  made->is_tracked_ = name == "native";
  if (!made->is_tracked_) {
    made->other_allocator_ = kMallocAsync;
  } else if (c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments()) {
    made->other_allocator_ = "PyTorch's with expandable segments";
  }
  if (made->is_tracked_) {
    native::attachAllocatorTraceTracker([made](const TraceEntry& entry) { made->on_entry(entry); });
  }
  if (is_used) made->adopt(live_blocks(device));  // behind the tracker, so that none is missed
  made->forget_unknown_frees();
  installed = made;
  return installed;
}

void CudaAllocations::on_entry(const TraceEntry& entry) {
  if (entry.device_ != device_) return;
  // A device address; host code only compares it.
  const auto* const address = reinterpret_cast<const void*>(entry.addr_);
  switch (entry.action_) {
    case TraceEntry::ALLOC:  // size_ is what was asked for, before rounding
      return on_alloc(address, static_cast<Bytes>(entry.size_));
    case TraceEntry::FREE_REQUESTED:
      return on_free(address);
    case TraceEntry::FREE_COMPLETED:
      return on_freed(address);
    case TraceEntry::SEGMENT_ALLOC:
    case TraceEntry::SEGMENT_MAP: {
      const std::lock_guard lock(mutex_);
      ++driver_allocations_;
      return;
    }
    default:
      return;
  }
}

void CudaAllocations::adopt(const std::vector<Older>& live) {
  const std::lock_guard lock(mutex_);
  for (const Older& older : live) {
    if (blocks_.find(older.address) != nullptr || unknown_frees_.contains(older.address)) continue;
    AllocationEvent event;
    event.serial = next_serial_++;
    event.bytes = older.bytes;
    event.requested = counted_.requested += older.bytes;
    blocks_.insert({.address = older.address,
                    .bytes = older.bytes,
                    .serial = event.serial,
                    .tag = kStepAllocation});
    add_setup(event);
    if (in_setup_) ++setup_.adopted;
    counted_.rounded += simulator::placed_bytes(older.bytes);
  }
  counted_.peak_requested = std::max(counted_.peak_requested, counted_.requested);
  counted_.peak_rounded = std::max(counted_.peak_rounded, counted_.rounded);
}

void CudaAllocations::forget_unknown_frees() {
  const std::lock_guard lock(mutex_);
  notes_unknown_frees_ = false;
  unknown_frees_.clear();
}

void CudaAllocations::on_alloc(const void* address, Bytes bytes) {
  AllocationEvent event;
  event.bytes = bytes;
  event.tag = allocation_tag();
  {
    const std::lock_guard lock(mutex_);
    count_if_delayed();
    event.serial = next_serial_++;
    event.requested = counted_.requested += bytes;
    counted_.rounded += simulator::placed_bytes(bytes);
    counted_.peak_requested = std::max(counted_.peak_requested, counted_.requested);
    counted_.peak_rounded = std::max(counted_.peak_rounded, counted_.rounded);
    blocks_.insert({.address = address, .bytes = bytes, .serial = event.serial, .tag = event.tag});
    add_setup(event);
  }
  if (AllocationListener* const listener = listener_.load(std::memory_order_acquire)) {
    listener->on_alloc(event);
  }
}

void CudaAllocations::on_free(const void* address) {
  std::optional<AllocationEvent> event;
  {
    const std::lock_guard lock(mutex_);
    event = count_free(address);
    if (!event) {  // live since before the tracker was attached
      if (notes_unknown_frees_) unknown_frees_.insert(address);
      return;
    }
    being_freed_ = address;
  }
  if (AllocationListener* const listener = listener_.load(std::memory_order_acquire)) {
    listener->on_free(*event);
  }
}

void CudaAllocations::on_untracked_free(const void* address) {
  std::optional<AllocationEvent> event;
  {
    const std::lock_guard lock(mutex_);
    event = count_free(address);
    if (!event) return;
  }
  if (AllocationListener* const listener = listener_.load(std::memory_order_acquire)) {
    listener->on_free(*event);
  }
}

std::optional<AllocationEvent> CudaAllocations::count_free(const void* address) {
  const std::optional<Block> block = blocks_.erase(address);
  if (!block) return std::nullopt;
  AllocationEvent event;
  event.is_free = true;
  event.serial = block->serial;
  event.bytes = block->bytes;
  event.tag = block->tag;
  event.requested = counted_.requested -= block->bytes;
  counted_.rounded -= simulator::placed_bytes(block->bytes);
  count_if_delayed();
  add_setup(event);
  return event;
}

void CudaAllocations::add_setup(const AllocationEvent& event) {
  if (!in_setup_) return;
  if (setup_.events.size() < kMostSetupEvents) return setup_.events.push_back(event);
  in_setup_ = false;
  setup_ = {};
}

// Completion follows within the same call, unless another stream holds the block.
void CudaAllocations::count_if_delayed() {
  if (std::exchange(being_freed_, nullptr) != nullptr) ++delayed_frees_;
}

void CudaAllocations::on_freed(const void* address) {
  const std::lock_guard lock(mutex_);
  if (being_freed_ == address) being_freed_ = nullptr;
}

Bytes CudaAllocations::requested() const {
  const std::lock_guard lock(mutex_);
  return counted_.requested;
}

CudaAllocations::Counted CudaAllocations::counted() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

void CudaAllocations::reset_peaks() {
  const std::lock_guard lock(mutex_);
  counted_.peak_requested = counted_.requested;
  counted_.peak_rounded = counted_.rounded;
}

std::int64_t CudaAllocations::next_serial() const {
  const std::lock_guard lock(mutex_);
  return next_serial_;
}

std::int64_t CudaAllocations::serial_of(const void* data) const {
  const std::lock_guard lock(mutex_);
  const Block* const block = blocks_.find(data);
  return block == nullptr ? -1 : block->serial;
}

std::vector<LiveAllocation> CudaAllocations::live() const {
  std::unique_lock lock(mutex_);
  const std::vector<Block> blocks = blocks_.blocks();
  lock.unlock();
  return in_order_of_serial(blocks);
}

void CudaAllocations::name(std::vector<simulator::ObservedBlock>& blocks) const {
  const std::lock_guard lock(mutex_);
  for (simulator::ObservedBlock& each : blocks) {
    if (!each.allocated) continue;
    // A device address; host code only compares it.
    const Block* const block =
        blocks_.find(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(each.address)));
    if (block == nullptr) continue;
    each.serial = block->serial;
    each.requested = block->bytes;
    each.tag = block->tag;
  }
}

std::int64_t CudaAllocations::driver_allocations() const {
  const std::lock_guard lock(mutex_);
  return driver_allocations_;
}

std::int64_t CudaAllocations::delayed_frees() const {
  const std::lock_guard lock(mutex_);
  return delayed_frees_ + (being_freed_ != nullptr ? 1 : 0);
}

void CudaAllocations::set_listener(AllocationListener* listener) {
  listener_.store(listener, std::memory_order_release);
}

SetupHistory CudaAllocations::setup_history() const {
  const std::lock_guard lock(mutex_);
  SetupHistory history = setup_;
  if (!in_first_step_) history.first_step = history.events.size();
  return history;
}

void CudaAllocations::begin_first_step() {
  const std::lock_guard lock(mutex_);
  if (!in_setup_ || in_first_step_) return;
  in_first_step_ = true;
  setup_.first_step = setup_.events.size();
}

void CudaAllocations::end_setup() {
  const std::lock_guard lock(mutex_);
  in_setup_ = false;
}

}  // namespace stowage::executor
