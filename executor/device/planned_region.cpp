#include "executor/device/planned_region.h"

namespace stowage::executor {

PlannedRegion::PlannedRegion(const StepMemory& owner, simulator::MemoryLayout layout,
                             PagedMemory memory)
    : owner_(&owner), layout_(std::move(layout)), memory_(std::move(memory)), server_(layout_) {
  for (std::size_t r = 0; r < layout_.live.ranges.size(); ++r) {
    range_at_.insert(range_at_.end(), layout_.placement.pages_of[r].size(),
                     static_cast<std::int32_t>(r));
  }
}

std::byte* PlannedRegion::allocate(Bytes bytes) {
  const std::int32_t range = server_.allocate(bytes);
  if (range < 0) return nullptr;
  return memory_.begin() + layout_.address[static_cast<std::size_t>(range)];
}

void PlannedRegion::free(const void* data) {
  const Bytes at = static_cast<const std::byte*>(data) - memory_.begin();
  server_.free(range_at_[static_cast<std::size_t>(at / layout_.placement.page_bytes)]);
}

void PlannedRegion::close() {
  owner_ = nullptr;
  server_.end_period();
}

}  // namespace stowage::executor
