// DevicePlacement: where every device allocation of a planned step lies, all known ahead and the
// same in every period. Memory is physical pages. An allocation has an address range of its own,
// which no other one has, whose pages are mapped once, ahead of the first period; pages are shared
// over time by ranges that are never there at the same time, in any order and without being
// contiguous, so that full pages are placed without a loss: intervals are coloured. What does not
// fill a page shares one with others by offset (page_bins.h): a range begins at a page's begin, or
// ends at a page's end. Pages are numbered so that those which go the same ways follow each other:
// a chunk of them is made and mapped at once.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/placement/live_ranges.h"
#include "simulator/step/grouped.h"
#include "traces/units.h"

namespace stowage::simulator {

struct DevicePlacement {
  Bytes page_bytes = 0;
  std::int32_t pages = 0;  // physical ones
  // By range: its pages in order of address, and where in the first of them it begins, a multiple
  // of kPlacementAlignment.
  Grouped<std::int32_t> pages_of;
  std::vector<Bytes> offset;
  // The first page of each chunk, in order. A range has all pages of a chunk, in order, or none.
  std::vector<std::int32_t> chunks;
  Bytes lower_bound =
      0;  // no placement takes fewer bytes: the most that are there of what is placed

  [[nodiscard]] Bytes bytes() const { return pages * page_bytes; }
};

// Systems bound how many mappings a process may have, and each takes time to make.
struct PageChoice {
  Bytes smallest = 0;     // a multiple of kPlacementAlignment
  std::int64_t most = 0;  // mapped pages
};
// The smallest page of `smallest` times a power of two of which all ranges have `most` or fewer, as
// far as larger ones are fewer. Cost: O(ranges) for each doubling.
[[nodiscard]] Bytes page_bytes(const LiveRanges& live, const PageChoice& choice);

// What a page of CUDA's virtual memory is.
inline constexpr Bytes kDevicePage = Bytes{2} << 20;
// On a GPU: these, as far as they map 8.8 TB or less, forty times what the largest recorded step
// maps. Whatever a file says that a step allocates, its placement takes little memory and time.
inline constexpr PageChoice kDevicePages{kDevicePage, std::int64_t{1} << 22};

// `page_bytes`: a multiple of kPlacementAlignment; else kDevicePages. Cost: O(ranges * bins +
// mapped pages log pages).
[[nodiscard]] DevicePlacement place(const LiveRanges& live, Bytes page_bytes);
[[nodiscard]] DevicePlacement place(const LiveRanges& live);

// What place() takes, without the places, and what lies outside; both have a lower bound. A part of
// its cost.
struct PlannedBytes {
  Bytes bytes = 0;        // of physical pages, and of segments of what is outside
  Bytes lower_bound = 0;  // no placement takes fewer: the peak of live_bytes()
};
[[nodiscard]] PlannedBytes placed_size(const LiveRanges& live, Bytes page_bytes);
[[nodiscard]] PlannedBytes placed_size(const LiveRanges& live);

}  // namespace stowage::simulator
