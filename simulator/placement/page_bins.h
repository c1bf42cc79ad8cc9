// PageBins: what does not fill a page, packed into pages that are there for a time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "traces/units.h"

namespace stowage::simulator {

// A piece of a range that is shorter than a page.
struct PagePiece {
  std::int32_t range = 0;
  Bytes bytes = 0;  // a multiple of kPlacementAlignment, below a page
  std::int32_t begin = 0;
  std::int32_t end = 0;  // as of its range, which is there for an instant at least
  bool is_at_an_edge =
      false;  // full pages go on behind or ahead of it: it lies at an edge of its own
};

// One page for as long as any of its pieces is there, without a gap in between; pieces that are
// there at the same time do not overlap.
struct Bin {
  std::int32_t begin = 0;
  std::int32_t end = 0;                                // as of a range
  std::vector<std::pair<std::int32_t, Bytes>> pieces;  // number of the piece, offset in the page
};

// In which order pieces are packed: those that are there the longest first, or those at an edge
// ahead of all others, the longest or the largest first. None is the best for all steps.
enum class PackOrder : std::uint8_t { longest, edges_longest, edges_largest };

// Offline, in that order; each where it adds the least time to pages that are there, time near the
// peak of `live_bytes` (by instant) counting most; then where the fewest bytes are left. Each bin
// is without a gap in time. At most 4,000,000 / pieces bins, or 64, are looked at for each piece;
// of these only those are searched that can have enough bytes free when the piece begins, is half
// over and ends. Cost: O(pieces * bins looked at * (log pieces of a bin + those of them that begin
// while the piece is there, or sooner by no more than the bin's longest)) at worst. Memory: 2 kB a
// bin.
[[nodiscard]] std::vector<Bin> pack_pages(const std::vector<PagePiece>& pieces, Bytes page_bytes,
                                          const std::vector<Bytes>& live_bytes, PackOrder by);

}  // namespace stowage::simulator
