// What a search for one budget starts from, whatever the budget: how storages can leave, in which
// orders they are taken, which of them belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/bounds.h"
#include "planner/footprint.h"
#include "planner/footprint_changes.h"
#include "planner/set_builder.h"

namespace stowage::planner {

class SearchSpace {
 public:
  using Order = std::vector<WayOut>;

  // Both must outlive it. Cost: O(positions + movables log movables).
  SearchSpace(const Footprints& footprints, const TightPlan& tight);

  [[nodiscard]] const Footprints& footprints() const { return footprints_; }
  [[nodiscard]] const FootprintChanges& changes() const { return changes_; }
  [[nodiscard]] const TightPlan& tight() const { return tight_; }

  // By preference all that can leave, in all ways but `always` of parameters: earliest, longest
  // idle, idle times bytes, largest, cheapest per byte moved: first without model state; then,
  // where some can stream, with parameters, with optimizer state, with both (and gradients with
  // each of these, the first included, where they may leave), and the first and the last of these
  // five also with it ahead of all others. Storages leave `shared` where that is allowed.
  [[nodiscard]] const std::vector<Order>& orders() const { return orders_; }
  // The same, storages as in the tight plan where they leave there.
  [[nodiscard]] const std::vector<Order>& tight_orders() const { return tight_orders_; }
  // How it leaves, with as few copies as it can.
  [[nodiscard]] std::vector<Choice> ways_of(std::size_t movable) const;
  // Movables of identical layers that some plan can take away, each group of two at least.
  [[nodiscard]] const std::vector<std::vector<std::size_t>>& groups() const { return groups_; }
  // None: -1.
  [[nodiscard]] std::int32_t movable_of(StorageId storage) const {
    return movable_of_[storage.index()];
  }
  // Movables that some plan can take away.
  [[nodiscard]] std::int64_t candidates() const;

 private:
  [[nodiscard]] Order all() const;
  void make_orders();
  void make_groups();

  const Footprints& footprints_;
  const TightPlan& tight_;
  const FootprintChanges changes_;
  std::vector<Order> orders_;
  std::vector<Order> tight_orders_;
  std::vector<std::vector<std::size_t>> groups_;
  std::vector<std::int32_t> movable_of_;  // by storage
};

}  // namespace stowage::planner
