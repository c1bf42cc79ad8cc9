// SerialNumbers: numbers allocation serials 0, 1, .. in the order in which a step first names them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage::executor {

class SerialNumbers {
 public:
  // Starts anew; keeps its memory. Cost: O(capacity).
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    count_ = 0;
  }

  // The number of `serial` >= 0, a new one at its first call. Cost: O(1), without allocation when
  // there was room in an earlier step.
  std::int32_t number_of(std::int64_t serial) {
    if (2 * static_cast<std::size_t>(count_) >= slots_.size()) grow();
    Slot& slot = find(serial);
    if (slot.serial < 0) slot = {serial, count_++};
    return slot.number;
  }

 private:
  struct Slot {
    std::int64_t serial = -1;  // free
    std::int32_t number = 0;
  };

  // Open addressing; serials are consecutive numbers, so that they spread by themselves.
  Slot& find(std::int64_t serial) {
    const std::size_t mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(serial) & mask;
    while (slots_[at].serial >= 0 && slots_[at].serial != serial) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> old(std::max<std::size_t>(256, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.serial >= 0) find(slot.serial) = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::int32_t count_ = 0;
};

}  // namespace stowage::executor
