// Which storages leave, by arithmetic on footprints alone: sets whose tight plan keeps a target. No
// replay is needed to know that: requested bytes are a function of program order.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/footprint_changes.h"
#include "simulator/lowering/memory_profile.h"

namespace stowage::planner {

// A set that changes; each change O(log segments).
class SetBuilder {
 public:
  // `offload`: how each movable leaves when it leaves (keep = never). Both must outlive the set.
  SetBuilder(const FootprintChanges& changes, const std::vector<Choice>& offload);

  void take(std::size_t movable);  // into the set; no effect when it is in
  void put_back(std::size_t movable);
  [[nodiscard]] bool has(std::size_t movable) const { return choices_[movable] != Choice::keep; }
  [[nodiscard]] bool can_take(std::size_t movable) const {
    return (*offload_)[movable] != Choice::keep;
  }
  [[nodiscard]] const std::vector<Choice>& choices() const { return choices_; }

  // Peak of the tight plan of the set.
  [[nodiscard]] Bytes peak() const;

  // Takes storages in the order given until the peak is within the target: each time the first one
  // that frees bytes at the last position above it. False when the order runs out.
  bool fill(const std::vector<std::size_t>& order, Bytes target);
  // Puts back, last of the order first, whatever the target does not need.
  void prune(const std::vector<std::size_t>& order, Bytes target);

 private:
  void apply(std::size_t movable, Choice choice, Bytes sign);

  const FootprintChanges* changes_;
  const std::vector<Choice>* offload_;
  std::vector<Choice> choices_;
  simulator::MemoryProfile profile_;
};

}  // namespace stowage::planner
