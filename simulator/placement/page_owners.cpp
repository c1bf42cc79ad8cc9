#include "simulator/placement/page_owners.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "traces/result.h"

namespace stowage::simulator {

PageOwners::PageOwners(const LiveRanges& live, const DevicePlacement& placement)
    : owners_(placement.chunks.size()), has_(live.ranges.size(), false) {
  std::vector<std::int32_t> chunk_at(static_cast<std::size_t>(placement.pages), -1);
  for (std::size_t c = 0; c < placement.chunks.size(); ++c) {
    chunk_at[static_cast<std::size_t>(placement.chunks[c])] = static_cast<std::int32_t>(c);
  }
  std::vector<std::pair<std::size_t, Part>> parts;
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    const Bytes begin = placement.offset[r];
    const Bytes end = begin + placed_bytes(live.ranges[r].bytes);
    Bytes at = 0;
    for (const std::int32_t page : placement.pages_of[r]) {
      const std::int32_t chunk = chunk_at[static_cast<std::size_t>(page)];
      if (chunk >= 0) {
        parts.emplace_back(r, Part{chunk, static_cast<std::int32_t>(r), std::max(begin, at) - at,
                                   std::min(end, at + placement.page_bytes) - at});
      }
      at += placement.page_bytes;
    }
  }
  parts_of_ = Grouped<Part>(live.ranges.size(), parts);
}

std::int32_t PageOwners::take(std::int32_t range) {
  const auto parts = parts_of_[static_cast<std::size_t>(range)];
  for (const Part& part : parts) {
    for (const Part& other : owners_[static_cast<std::size_t>(part.chunk)]) {
      if (other.first < part.end && part.first < other.end) return other.range;
    }
  }
  for (const Part& part : parts) owners_[static_cast<std::size_t>(part.chunk)].push_back(part);
  has_[static_cast<std::size_t>(range)] = true;
  ++count_;
  return -1;
}

void PageOwners::give_back(std::int32_t range) {
  STOWAGE_ASSERT(has(range));
  for (const Part& part : parts_of_[static_cast<std::size_t>(range)]) {
    std::erase_if(owners_[static_cast<std::size_t>(part.chunk)],
                  [&](const Part& other) { return other.range == range; });
  }
  has_[static_cast<std::size_t>(range)] = false;
  --count_;
}

}  // namespace stowage::simulator
