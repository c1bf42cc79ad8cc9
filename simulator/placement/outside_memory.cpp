#include "simulator/placement/outside_memory.h"

#include <cstddef>

#include "simulator/allocator/own_segments.h"
#include "simulator/step/block_bytes.h"

namespace stowage::simulator {
namespace {

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
  OwnSegments segments;
  for (std::size_t row = 0; row < setup.size(); ++row) {
    if (setup.free_of[row] >= 0 || is_freed[row]) continue;
    const bool is_adopted = static_cast<std::int64_t>(row) < trace.quality.adopted_allocations;
    if (const StorageId storage = setup.storage[row]; storage.valid()) {
      const std::size_t s = storage.index();
      const bool lasts = !storages.alloc_event[s].valid() && !storages.free_event[s].valid();
      if (!lasts) continue;
      if (storages.storage_class[s] == StorageClass::workspace) {
        // A library's, which moves. Older recordings say so of what is somebody's, too.
        if (!is_adopted && !is_given[s]) continue;
      } else if (storages.evidence[s] == Evidence::registered) {
        continue;
      }
      outside.is_storage[s] = true;
    } else if (!is_adopted) {
      continue;
    }
    outside.is_setup[row] = true;
    const Bytes block = block_bytes(setup.bytes[row]);
    outside.bytes.active += block;
    segments.add(block);
  }
  outside.bytes.reserved = segments.bytes();
  return outside;
}

}  // namespace stowage::simulator
