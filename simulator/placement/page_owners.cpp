#include "simulator/placement/page_owners.h"

#include <algorithm>
#include <cstddef>

#include "traces/result.h"

namespace stowage::simulator {

PageOwners::PageOwners(const LiveRanges& live, const DevicePlacement& placement)
    : placement_(placement),
      owners_(static_cast<std::size_t>(placement.pages)),
      has_(live.ranges.size(), false) {
  for (const LiveRange& range : live.ranges) bytes_.push_back(placed_bytes(range.bytes));
}

// visit(page, first byte, end) until it returns false.
template <class F>
void PageOwners::for_each_part(std::int32_t range, F&& visit) const {
  const auto r = static_cast<std::size_t>(range);
  const Bytes page_bytes = placement_.page_bytes;
  const Bytes begin = placement_.offset[r];
  const Bytes end = begin + bytes_[r];
  Bytes at = 0;
  for (const std::int32_t page : placement_.pages_of[r]) {
    const Bytes first = std::max(begin, at) - at;
    const Bytes last = std::min(end, at + page_bytes) - at;
    if (!visit(static_cast<std::size_t>(page), first, last)) return;
    at += page_bytes;
  }
}

std::int32_t PageOwners::take(std::int32_t range) {
  std::int32_t other = -1;
  for_each_part(range, [&](std::size_t page, Bytes first, Bytes end) {
    for (const Part& part : owners_[page]) {
      if (part.first < end && first < part.end) other = part.range;
    }
    return other < 0;
  });
  if (other >= 0) return other;
  for_each_part(range, [&](std::size_t page, Bytes first, Bytes end) {
    owners_[page].push_back({first, end, range});
    return true;
  });
  has_[static_cast<std::size_t>(range)] = true;
  ++count_;
  return -1;
}

void PageOwners::give_back(std::int32_t range) {
  STOWAGE_ASSERT(has(range));
  for_each_part(range, [&](std::size_t page, Bytes, Bytes) {
    std::erase_if(owners_[page], [&](const Part& part) { return part.range == range; });
    return true;
  });
  has_[static_cast<std::size_t>(range)] = false;
  --count_;
}

}  // namespace stowage::simulator
