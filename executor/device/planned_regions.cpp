#include "executor/device/planned_regions.h"

#include <algorithm>
#include <utility>

namespace stowage::executor {

std::shared_ptr<PlannedRegion> PlannedRegions::close(const PlannedRegion& region) {
  const auto at = std::find_if(all_.begin(), all_.end(),
                               [&](const auto& each) { return each.get() == &region; });
  if (at == all_.end()) return nullptr;
  std::shared_ptr<PlannedRegion> closed = *at;
  closed->close();
  static_cast<void>(take_if_over(at));
  return closed;
}

bool PlannedRegions::lend() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const auto& each) { return each->can_lend() && each->lend(); });
}

std::byte* PlannedRegions::allocate(const StepMemory* memory, Bytes bytes,
                                    const AllocationOrigin& origin,
                                    std::optional<std::size_t>* unnamed) const {
  if (memory == nullptr) return nullptr;
  for (const auto& each : all_) {
    if (each->is_of(memory)) return each->allocate(bytes, origin, unnamed);
  }
  return nullptr;
}

void PlannedRegions::name_unforeseen(const StepMemory* memory, std::size_t which,
                                     std::string op) const {
  for (const auto& each : all_) {
    if (each->is_of(memory)) return each->server().name_unforeseen(which, std::move(op));
  }
}

PlannedRegion* PlannedRegions::at(const void* data) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const auto& each) { return each->has(data); });
  return found == all_.end() ? nullptr : found->get();
}

std::shared_ptr<PlannedRegion> PlannedRegions::free(const void* data) {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const auto& each) { return each->has(data); });
  STOWAGE_ASSERT(found != all_.end());
  (*found)->free(data);
  return take_if_over(found);
}

Bytes PlannedRegions::bytes() const {
  Bytes bytes = 0;
  for (const auto& each : all_) bytes += each->bytes();
  return bytes;
}

Bytes PlannedRegions::lent_bytes() const {
  Bytes bytes = 0;
  for (const auto& each : all_) bytes += each->lent_bytes();
  return bytes;
}

std::shared_ptr<PlannedRegion> PlannedRegions::take_if_over(All::iterator region) {
  if (!(*region)->is_over()) return nullptr;
  std::shared_ptr<PlannedRegion> over = std::move(*region);
  all_.erase(region);
  return over;
}

}  // namespace stowage::executor
