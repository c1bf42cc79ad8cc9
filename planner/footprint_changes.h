// What taking one movable away changes, on positions put together: between two neighbouring
// positions at which some footprint changes only the most bytes matter, and no set of choices has
// its peak elsewhere. A step of 10,000 positions has some 1,000 such *segments*.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "planner/footprint.h"
#include "simulator/lowering/memory_profile.h"

namespace stowage::planner {

// Bytes that a choice holds more than `keep` (mostly fewer: negative) in [first, last) segments.
struct ByteChange {
  std::size_t first = 0;
  std::size_t last = 0;  // one behind
  Bytes bytes = 0;
};

class FootprintChanges {
 public:
  // Cost: O(positions + spans log spans).
  explicit FootprintChanges(const Footprints& footprints);

  // Disjoint, in order, none without bytes.
  [[nodiscard]] const std::vector<ByteChange>& of(std::size_t movable, Choice choice) const {
    return changes_[movable][static_cast<std::size_t>(choice)];
  }
  // What the choice holds more than `keep` there. Cost: O(log changes).
  [[nodiscard]] Bytes at(std::size_t movable, Choice choice, std::size_t segment) const;

  [[nodiscard]] std::size_t segments() const { return segments_; }
  [[nodiscard]] std::size_t movables() const { return changes_.size(); }
  // The most bytes in each segment with everything kept.
  [[nodiscard]] const simulator::MemoryProfile& resident() const { return resident_; }

 private:
  std::size_t segments_;
  std::vector<std::array<std::vector<ByteChange>, kChoices>> changes_;
  simulator::MemoryProfile resident_;
};

}  // namespace stowage::planner
