// At which addresses a GPU's driver places the segments that a caching allocator takes: they decide
// which of two free blocks of equal size is used.
//
// Observed with the allocator's own snapshot on one H200 (driver 580.159.04, 2026-11-21), with
// cudaMalloc of 2 MiB to 2 GiB: addresses fall. Each segment gets a slot at the low end, its size
// rounded up to 32 MiB, and begins it; one below 32 MiB goes into what is left of earlier slots if
// it fits, the lowest such place. What the very first segments find of a range that CUDA reserved
// before is left out, and so is the reuse of what was given back. Cost: O(slots) a segment.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/units.h"

namespace stowage::simulator {

// 0: addresses fall, as above. Others: segments lie anywhere, elsewhere for each value and the same
// in each run; what no driver does, and what shows how much hangs on the order.
using AddressOrder = std::uint32_t;
inline constexpr AddressOrder kFalling = 0;

class SegmentAddresses {
 public:
  struct Range {
    Bytes address = 0;
    Bytes size = 0;
  };

  explicit SegmentAddresses(AddressOrder order = kFalling) : order_(order) {}
  // Falling behind segments that were taken: in what is left of their slots, then below the lowest
  // of them. In order of address.
  explicit SegmentAddresses(const std::vector<Range>& taken);

  // The first slot of falling addresses ends here.
  static constexpr Bytes kTop = Bytes{1} << 46;

  // Address of a new segment.
  [[nodiscard]] Bytes take(Bytes size);

 private:
  AddressOrder order_ = kFalling;
  std::int64_t taken_ = 0;    // segments, of scattered ones
  Bytes lowest_ = kTop;       // of the slots
  std::vector<Range> rests_;  // by slot, from the highest to the lowest
};

}  // namespace stowage::simulator
