#include "simulator/placement/placement_check.h"

#include <algorithm>
#include <cstddef>

namespace stowage::simulator {
namespace {

// What a range has of a page, for a time within one period.
struct Part {
  std::int32_t page = 0;
  std::int32_t begin = 0;  // instants
  std::int32_t end = 0;
  std::int32_t range = 0;
  Bytes first = 0;  // bytes of the page
  Bytes last = 0;
};

bool is_whole(const DevicePlacement& placement, std::size_t range, Bytes end) {
  const auto pages = placement.pages_of[range];
  const Bytes offset = placement.offset[range];
  const bool has_pages = static_cast<Bytes>(pages.size()) * placement.page_bytes >= end;
  const bool is_aligned = offset >= 0 && offset % kPlacementAlignment == 0;
  return has_pages && is_aligned && std::all_of(pages.begin(), pages.end(), [&](std::int32_t page) {
           return page >= 0 && page < placement.pages;
         });
}

}  // namespace

std::vector<PlacementConflict> check_placement(const LiveRanges& as_there,
                                               const DevicePlacement& placement) {
  const LiveRanges live = taken_ranges(as_there);
  std::vector<PlacementConflict> conflicts;
  std::vector<Part> parts;
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    const LiveRange& range = live.ranges[r];
    const auto number = static_cast<std::int32_t>(r);
    const Bytes offset = placement.offset[r];
    const Bytes end = offset + placed_bytes(range.bytes);
    if (!is_whole(placement, r, end)) {
      conflicts.push_back({number, -1, -1});
      continue;
    }
    for (std::size_t k = 0; k < placement.pages_of[r].size(); ++k) {
      const Bytes at = static_cast<Bytes>(k) * placement.page_bytes;
      Part part{placement.pages_of[r][k],           range.begin,
                std::min(range.end, live.instants), number,
                std::max(offset, at) - at,          std::min(end, at + placement.page_bytes) - at};
      if (part.first >= part.last) continue;
      parts.push_back(part);
      if (range.end <= live.instants) continue;
      part.begin = 0;
      part.end = range.end - live.instants;
      parts.push_back(part);
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.page != b.page ? a.page < b.page : a.begin < b.begin;
  });
  std::vector<const Part*> there;
  for (const Part& part : parts) {
    std::erase_if(there, [&](const Part* other) {
      return other->page != part.page || other->end <= part.begin;
    });
    for (const Part* const other : there) {
      const bool share = part.first < other->last && other->first < part.last;
      if (share) conflicts.push_back({other->range, part.range, part.page});
    }
    there.push_back(&part);
  }
  return conflicts;
}

}  // namespace stowage::simulator
