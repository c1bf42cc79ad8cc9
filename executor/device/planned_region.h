// PlannedRegion: the pages of a layout and who has them. Not thread-safe: an allocator has its
// regions under its lock.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "executor/device/paged_memory.h"
#include "executor/device/step_memory.h"
#include "simulator/placement/hand_out_server.h"
#include "simulator/placement/memory_layout.h"
#include "traces/units.h"

namespace stowage::executor {

class PlannedRegion {
 public:
  // Both are of `owner`, which outlives the time that it is the owner.
  PlannedRegion(const StepMemory& owner, simulator::MemoryLayout layout, PagedMemory memory);
  PlannedRegion(const PlannedRegion&) = delete;
  PlannedRegion& operator=(const PlannedRegion&) = delete;

  [[nodiscard]] bool is_of(const StepMemory* memory) const { return owner_ == memory; }
  [[nodiscard]] simulator::HandOutServer& server() { return server_; }
  [[nodiscard]] Bytes bytes() const { return memory_.bytes(); }

  // Null: not from here. Cost: that of HandOutServer::allocate().
  [[nodiscard]] std::byte* allocate(Bytes bytes);
  [[nodiscard]] bool has(const void* data) const {
    const auto* const at = static_cast<const std::byte*>(data);
    return memory_.begin() <= at && at < memory_.begin() + memory_.region_bytes();
  }
  // Of what allocate() gave.
  void free(const void* data);

  // Nothing is handed out any more. Once nothing is live the region can go.
  void close();
  [[nodiscard]] bool is_over() const { return owner_ == nullptr && server_.live() == 0; }

 private:
  const StepMemory* owner_;
  simulator::MemoryLayout layout_;
  PagedMemory memory_;
  simulator::HandOutServer server_;
  std::vector<std::int32_t> range_at_;  // by page of the region
};

}  // namespace stowage::executor
