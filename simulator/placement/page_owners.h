// PageOwners: which ranges of a placement have bytes at this moment. Lifetimes are a promise that
// user code may break (a loss kept in a list), so a range is handed out only when nobody has any of
// its bytes: never two owners.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"
#include "simulator/step/grouped.h"
#include "traces/units.h"

namespace stowage::simulator {

class PageOwners {
 public:
  // Cost: O(mapped pages).
  PageOwners(const LiveRanges& live, const DevicePlacement& placement);

  // Gives the range its bytes and returns -1; or, when another one (or it itself) has some of them,
  // changes nothing and returns that one. Cost: O(its chunks * owners of one), a few ns a chunk.
  [[nodiscard]] std::int32_t take(std::int32_t range);
  // `range` has its bytes. Cost: that of take().
  void give_back(std::int32_t range);

  [[nodiscard]] bool has(std::int32_t range) const { return has_[static_cast<std::size_t>(range)]; }
  // How many ranges have their bytes.
  [[nodiscard]] std::int32_t count() const { return count_; }

 private:
  // What a range has of a chunk, by bytes of its first page: of a larger one it has all.
  struct Part {
    std::int32_t chunk = 0;
    std::int32_t range = 0;
    Bytes first = 0;
    Bytes end = 0;
  };

  Grouped<Part> parts_of_;                 // by range
  std::vector<std::vector<Part>> owners_;  // by chunk
  std::vector<bool> has_;                  // by range
  std::int32_t count_ = 0;
};

}  // namespace stowage::simulator
