// What a search for one budget starts from, whatever the budget: in which ways storages can leave,
// in which orders they are taken, which of them belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/bounds.h"
#include "planner/footprint.h"
#include "planner/footprint_changes.h"

namespace stowage::planner {

// How each movable leaves when it leaves, with parameters streaming in one way or not at all.
struct Ways {
  std::vector<Choice> preferred;  // shared where allowed
  std::vector<Choice> tight;      // as in the tight plan
};

class SearchSpace {
 public:
  using Order = std::vector<std::size_t>;

  // Both must outlive it. Cost: O(positions + movables log movables).
  SearchSpace(const Footprints& footprints, const TightPlan& tight);

  [[nodiscard]] const Footprints& footprints() const { return footprints_; }
  [[nodiscard]] const FootprintChanges& changes() const { return changes_; }
  [[nodiscard]] const TightPlan& tight() const { return tight_; }

  // Parameters stay, stream forward, stream always; the first alone where none can stream.
  [[nodiscard]] const std::vector<Ways>& ways() const { return ways_; }
  // Of a set in which parameters stream in one way: that way, else the one that is likely cheapest.
  [[nodiscard]] const Ways& ways_of(const std::vector<Choice>& choices) const;
  // All movables by preference: earliest pack, longest idle, idle times bytes, largest, cheapest
  // per byte moved; the first and the last also with parameters ahead of all others.
  [[nodiscard]] const std::vector<Order>& orders() const { return orders_; }
  // Movables of identical layers that some plan can take away, each group of two at least.
  [[nodiscard]] const std::vector<std::vector<std::size_t>>& groups() const { return groups_; }
  // None: -1.
  [[nodiscard]] std::int32_t movable_of(StorageId storage) const {
    return movable_of_[storage.index()];
  }
  // Movables that some plan can take away.
  [[nodiscard]] std::int64_t candidates() const;

 private:
  void make_ways();
  void make_orders();
  void make_groups();

  const Footprints& footprints_;
  const TightPlan& tight_;
  const FootprintChanges changes_;
  std::vector<Ways> ways_;
  std::vector<Order> orders_;
  std::vector<std::vector<std::size_t>> groups_;
  std::vector<std::int32_t> movable_of_;  // by storage
};

}  // namespace stowage::planner
