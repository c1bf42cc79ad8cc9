#include "executor/device/tracked_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

#include "executor/device/allocating_op.h"
#include "executor/device/allocation_tag.h"
#include "executor/device/host_work.h"
#include "executor/device/live_list.h"
#include "traces/size_text.h"

namespace stowage::executor {

namespace {

constexpr std::size_t kAlignment = 64;
// PyTorch's own sits at priority 0. Ties replace, so a lower number would do; a higher one keeps
// libraries that register theirs later with the default priority from replacing ours.
constexpr std::uint8_t kPriority = 100;

void free_host_memory(void* data) {
  std::free(data);
}

c10::DataPtr host_memory(std::size_t bytes) {
  void* data = nullptr;
  TORCH_CHECK_WITH(OutOfMemoryError, posix_memalign(&data, kAlignment, bytes) == 0,
                   "the host cannot allocate ", bytes, " bytes");
  return {data, data, free_host_memory, c10::Device(c10::DeviceType::CPU)};
}

TrackedAllocator* g_allocator = nullptr;  // set once, before the first block exists

std::string refusal(std::size_t bytes, Bytes current, Bytes limit) {
  std::string text = "the CPU device cannot allocate " + format_bytes(static_cast<Bytes>(bytes)) +
                     " on top of " + format_bytes(current);
  if (limit > 0) text += " under its limit of " + format_bytes(limit);
  return text;
}

}  // namespace

Result<TrackedAllocator*> TrackedAllocator::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_allocator = new TrackedAllocator;
    c10::SetAllocator(c10::DeviceType::CPU, g_allocator, kPriority);
  });
  if (c10::GetAllocator(c10::DeviceType::CPU) != g_allocator) {
    return Error{.code = ErrorCode::environment,
                 .message = "another CPU allocator is installed in this process",
                 .file = {},
                 .pointer = {},
                 .hint = "make the CPU device before anything that replaces PyTorch's allocator"};
  }
  return g_allocator;
}

c10::DataPtr TrackedAllocator::allocate(std::size_t bytes) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, nullptr, raw_deleter(), cpu};
  if (is_host_work()) return host_memory(bytes);
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<Bytes>::max() / 2);
  const Bytes size = static_cast<Bytes>(std::min(bytes, kMost));

  const StepMemory* const memory = has_regions_ ? current_memory() : nullptr;

  // The bytes are booked before malloc runs, so that two threads cannot pass the limit together.
  std::unique_lock lock(mutex_);
  const Bytes before = current_;
  const Bytes limit = limit_;
  const bool over_limit = bytes > kMost || (limit > 0 && size > limit - before);
  if (!over_limit) current_ += size;
  std::optional<std::size_t> unnamed;
  void* data =
      over_limit ? nullptr : regions_.allocate(memory, size, {allocation_tag(), 0}, &unnamed);
  lock.unlock();
  if (unnamed) {
    std::string op = allocating_op();
    lock.lock();
    regions_.name_unforeseen(memory, *unnamed, std::move(op));
    lock.unlock();
  }
  TORCH_CHECK_WITH(OutOfMemoryError, !over_limit, refusal(bytes, before, limit));

  bool refused = false;
  while (data == nullptr && !refused && posix_memalign(&data, kAlignment, bytes) != 0) {
    data = nullptr;
    refused = !has_regions_ || !lend();
  }
  lock.lock();
  if (refused) {
    current_ -= size;
    lock.unlock();
    TORCH_CHECK_WITH(OutOfMemoryError, false, refusal(bytes, before, 0));
  }
  return given(lock, data, size);
}

c10::DataPtr TrackedAllocator::given(std::unique_lock<std::mutex>& lock, void* data, Bytes bytes) {
  peak_ = std::max(peak_, current_);
  const Block block{
      .address = data, .bytes = bytes, .serial = next_serial_++, .tag = allocation_tag()};
  blocks_.insert(block);
  const Bytes live = current_;
  lock.unlock();
  // As PyTorch's own does: for a profiler that records memory.
  c10::profiledCPUMemoryReporter().New(data, static_cast<std::size_t>(bytes));

  if (AllocationListener* const listener = listener_.load(std::memory_order_acquire)) {
    listener->on_alloc({block.serial, block.bytes, block.tag, live, false});
  }
  return {data, data, raw_deleter(), c10::Device(c10::DeviceType::CPU)};
}

void TrackedAllocator::release(void* data) {
  if (data == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(data);  // while nobody else can have it
  std::optional<Block> block;
  Bytes live = 0;
  bool is_planned = false;
  std::shared_ptr<PlannedRegion> over;  // goes when all is done
  {
    const std::lock_guard lock(mutex_);
    block = blocks_.erase(data);
    STOWAGE_ASSERT(block.has_value());
    live = current_ -= block->bytes;
    if (regions_.at(data) != nullptr) {
      is_planned = true;
      over = regions_.free(data);
      has_regions_ = regions_.size() > 0;
    }
  }
  if (AllocationListener* const listener = listener_.load(std::memory_order_acquire)) {
    listener->on_free({block->serial, block->bytes, block->tag, live, true});
  }
  if (!is_planned) std::free(data);
}

void TrackedAllocator::add_region(std::shared_ptr<PlannedRegion> region) {
  const std::lock_guard lock(mutex_);
  regions_.add(std::move(region));
  has_regions_ = true;
}

void TrackedAllocator::close_region(const PlannedRegion& region) {
  std::shared_ptr<PlannedRegion> closed;
  {
    const std::lock_guard lock(mutex_);
    closed = regions_.close(region);
    has_regions_ = regions_.size() > 0;
  }
  if (closed != nullptr) closed->give_back_rest();
}

bool TrackedAllocator::lend() {
  const std::lock_guard lock(mutex_);
  return regions_.lend();
}

Result<c10::DataPtr> TrackedAllocator::take_lasting(PlannedRegion& region, Bytes bytes) {
  std::unique_lock lock(mutex_);
  const Result<std::byte*> data = region.take_lasting(bytes);
  if (!data) return data.error();
  if (*data == nullptr) return c10::DataPtr();
  current_ += bytes;
  return given(lock, *data, bytes);
}

std::size_t TrackedAllocator::regions() const {
  const std::lock_guard lock(mutex_);
  return regions_.size();
}

Bytes TrackedAllocator::region_bytes() const {
  const std::lock_guard lock(mutex_);
  return regions_.bytes();
}

c10::DeleterFnPtr TrackedAllocator::raw_deleter() const {
  return [](void* data) { g_allocator->release(data); };
}

void TrackedAllocator::copy_data(void* destination, const void* source, std::size_t bytes) const {
  default_copy_data(destination, source, bytes);
}

MemoryStats TrackedAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats;
  stats.requested = stats.active = current_;
  stats.peak_requested = stats.peak_active = peak_;
  stats.allocations = next_serial_;
  return stats;
}

void TrackedAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = current_;
}

void TrackedAllocator::set_limit(Bytes limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

void TrackedAllocator::set_listener(AllocationListener* listener) {
  listener_.store(listener, std::memory_order_release);
}

std::int64_t TrackedAllocator::serial_of(const void* data) const {
  const std::lock_guard lock(mutex_);
  const Block* const block = blocks_.find(data);
  return block == nullptr ? -1 : block->serial;
}

std::vector<LiveAllocation> TrackedAllocator::live_allocations() const {
  std::unique_lock lock(mutex_);
  const std::vector<Block> blocks = blocks_.blocks();
  lock.unlock();
  return in_order_of_serial(blocks);
}

std::int64_t TrackedAllocator::next_serial() const {
  const std::lock_guard lock(mutex_);
  return next_serial_;
}

}  // namespace stowage::executor
