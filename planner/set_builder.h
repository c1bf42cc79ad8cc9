// Which storages leave, by arithmetic on footprints alone: sets whose tight plan keeps a target. No
// replay is needed to know that: requested bytes are a function of program order.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/footprint_changes.h"
#include "simulator/lowering/memory_profile.h"

namespace stowage::planner {

// A movable leaves so. A layer can leave in two ways at once: with(forward, backward).
struct WayOut {
  std::size_t movable = 0;
  Choice choice = Choice::keep;
};

// A set that changes; each change O(log segments).
class SetBuilder {
 public:
  // The changes must outlive it. Nothing is in it.
  explicit SetBuilder(const FootprintChanges& changes);

  void set(std::size_t movable, Choice choice);
  [[nodiscard]] const std::vector<Choice>& choices() const { return choices_; }

  // Peak of the tight plan of the set.
  [[nodiscard]] Bytes peak() const;

  // Takes them in the order given until the peak is within the target: each time the first one that
  // frees bytes at the last position above it. False when the order runs out.
  bool fill(const std::vector<WayOut>& order, Bytes target);
  // Puts back, last of the order first, whatever the target does not need.
  void prune(const std::vector<WayOut>& order, Bytes target);

 private:
  void apply(std::size_t movable, Choice choice, Bytes sign);

  const FootprintChanges* changes_;
  std::vector<Choice> choices_;
  simulator::MemoryProfile profile_;
};

}  // namespace stowage::planner
