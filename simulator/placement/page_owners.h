// PageOwners: which ranges of a placement have bytes at this moment. Lifetimes are a promise that
// user code may break (a loss kept in a list), so a range is handed out only when nobody has any of
// its bytes: never two owners.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"
#include "traces/units.h"

namespace stowage::simulator {

class PageOwners {
 public:
  // The placement outlives it. Cost: O(pages).
  PageOwners(const LiveRanges& live, const DevicePlacement& placement);

  // Gives the range its bytes and returns -1; or, when another one (or it itself) has some of them,
  // changes nothing and returns that one. Cost: O(its pages * owners of a page), a few ns a page.
  [[nodiscard]] std::int32_t take(std::int32_t range);
  // `range` has its bytes. Cost: that of take().
  void give_back(std::int32_t range);

  [[nodiscard]] bool has(std::int32_t range) const { return has_[static_cast<std::size_t>(range)]; }
  // How many ranges have their bytes.
  [[nodiscard]] std::int32_t count() const { return count_; }

 private:
  // Of a page.
  struct Part {
    Bytes first = 0;
    Bytes end = 0;
    std::int32_t range = 0;
  };
  template <class F>
  void for_each_part(std::int32_t range, F&& visit) const;

  const DevicePlacement& placement_;
  std::vector<Bytes> bytes_;               // by range, as placed
  std::vector<std::vector<Part>> owners_;  // by page
  std::vector<bool> has_;                  // by range
  std::int32_t count_ = 0;
};

}  // namespace stowage::simulator
