#include "simulator/placement/outside_memory.h"

#include <cstddef>

#include "simulator/allocator/caching_allocator.h"
#include "simulator/step/block_bytes.h"

namespace stowage::simulator {
namespace {

// Of c10::cuda::CUDACachingAllocator: small blocks share segments of 2 MiB, those below 10 MiB
// segments of 20 MiB, larger ones have one each in multiples of 2 MiB.
constexpr Bytes kMiddleSize = Bytes{10} << 20;
constexpr Bytes kMiddleSegment = Bytes{20} << 20;

Bytes rounded_up(Bytes bytes, Bytes multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

class Counter {
 public:
  void add(Bytes bytes) {
    const Bytes block = block_bytes(bytes);
    active_ += block;
    if (block <= CachingAllocator::kSmallSize) {
      small_ += block;
    } else if (block < kMiddleSize) {
      middle_ += block;
    } else {
      large_ += rounded_up(block, CachingAllocator::kSmallSegment);
    }
  }
  [[nodiscard]] OutsideBytes bytes() const {
    return {active_, rounded_up(small_, CachingAllocator::kSmallSegment) +
                         rounded_up(middle_, kMiddleSegment) + large_};
  }

 private:
  Bytes active_ = 0;
  Bytes small_ = 0;
  Bytes middle_ = 0;
  Bytes large_ = 0;
};

// By storage: whether an op of the step is given it, as ops are not given a library's workspaces.
std::vector<bool> given_storages(const Trace& trace) {
  std::vector<bool> is_given(trace.storages.size(), false);
  for (const TensorId tensor : trace.uses.tensor) {
    const StorageId storage = trace.tensors.storage[tensor.index()];
    if (storage.valid()) is_given[storage.index()] = true;
  }
  return is_given;
}

}  // namespace

OutsideMemory outside_memory(const Trace& trace) {
  OutsideMemory outside;
  const Setup& setup = trace.setup;
  const Storages& storages = trace.storages;
  outside.is_storage.assign(storages.size(), false);
  outside.is_setup.assign(setup.size(), false);
  std::vector<bool> is_freed(setup.size(), false);
  for (const std::int32_t row : setup.free_of) {
    if (row >= 0) is_freed[static_cast<std::size_t>(row)] = true;
  }
  const std::vector<bool> is_given = given_storages(trace);
  Counter counter;
  for (std::size_t row = 0; row < setup.size(); ++row) {
    if (setup.free_of[row] >= 0 || is_freed[row]) continue;
    const bool is_adopted = static_cast<std::int64_t>(row) < trace.quality.adopted_allocations;
    if (const StorageId storage = setup.storage[row]; storage.valid()) {
      const std::size_t s = storage.index();
      const bool lasts = !storages.alloc_event[s].valid() && !storages.free_event[s].valid();
      if (!lasts || storages.evidence[s] == Evidence::registered) continue;
      if (!is_adopted && !is_given[s]) continue;  // a library's workspace, which moves
      outside.is_storage[s] = true;
    } else if (!is_adopted) {
      continue;
    }
    outside.is_setup[row] = true;
    counter.add(setup.bytes[row]);
  }
  outside.bytes = counter.bytes();
  return outside;
}

}  // namespace stowage::simulator
