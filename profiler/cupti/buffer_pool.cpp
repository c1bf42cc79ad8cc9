#include "profiler/cupti/buffer_pool.h"

#include <cstdlib>
#include <utility>

namespace stowage::profiler {

std::uint8_t* BufferPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::uint8_t* const buffer = free_.back();
      free_.pop_back();
      return buffer;
    }
  }
  return static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
}

void BufferPool::give_back(std::uint8_t* buffer, std::size_t valid) {
  if (buffer == nullptr) return;
  const std::lock_guard lock(mutex_);
  Status status = decoder_.decode(buffer, valid);
  if (status_.ok() && !status.ok()) status_ = std::move(status);
  free_.push_back(buffer);
}

Result<RawActivities> BufferPool::take_records() {
  const std::lock_guard lock(mutex_);
  RawActivities records = decoder_.take();
  if (Status status = std::exchange(status_, Status(Unit{})); !status) return status.error();
  return records;
}

BufferPool& buffer_pool() {
  static auto* const pool = new BufferPool;
  return *pool;
}

}  // namespace stowage::profiler
