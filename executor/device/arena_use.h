// ArenaUse: how far into a host arena copies really reached, from the addresses that they were
// given. What a plan says of its host memory is compared with this: the arena has the plan's size
// by construction, so its size proves nothing.
#pragma once

#include <cstddef>

#include "traces/units.h"

namespace stowage::executor {

class ArenaUse {
 public:
  // A copy of `bytes` to or from `slot` was queued.
  void copied(const std::byte* slot, Bytes bytes) {
    if (bytes > 0 && (end_ == nullptr || slot + bytes > end_)) end_ = slot + bytes;
  }
  // Of the arena that begins at `arena`, the end of the highest byte that a copy wrote or read; 0
  // where there was none.
  [[nodiscard]] Bytes high_water(const std::byte* arena) const {
    return end_ == nullptr ? 0 : static_cast<Bytes>(end_ - arena);
  }

 private:
  const std::byte* end_ = nullptr;
};

}  // namespace stowage::executor
