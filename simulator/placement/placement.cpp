#include "simulator/placement/placement.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "simulator/placement/page_bins.h"

namespace stowage::simulator {
namespace {

// So many pages for a time.
struct Demand {
  std::int32_t begin = 0;
  std::int32_t end = 0;  // as of a range
  std::int32_t pages = 0;
  std::vector<std::int32_t> got{};
};

// Gives pages to demands. On a line that is exact: as many as are needed at once. What is there at
// the period's begin already gets its pages first, and these are taken again from its begin on, so
// that a demand gets those that are free for long enough, of these the ones that are taken again
// first.
class PageColours {
 public:
  explicit PageColours(std::int32_t instants) : instants_(instants) {}

  std::int32_t give(std::vector<Demand>& demands) {
    std::vector<Demand*> order;
    for (Demand& each : demands) {
      if (each.end > instants_) {
        take(each, instants_);
        // Behind its end in this period, until it begins again.
        for (const std::int32_t page : each.got)
          later_[each.end - instants_].emplace_back(page, each.begin);
      } else {
        order.push_back(&each);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Demand* a, const Demand* b) { return a->begin < b->begin; });
    for (Demand* const each : order) {
      give_back(each->begin);
      take(*each, each->end);
    }
    return pages_;
  }

 private:
  void give_back(std::int32_t now) {
    for (auto at = later_.begin(); at != later_.end() && at->first <= now; at = later_.erase(at)) {
      for (const auto& [page, until] : at->second) free_[until].push_back(page);
    }
  }

  // Pages that are free until `end` at least.
  void take(Demand& demand, std::int32_t end) {
    const bool wraps = demand.end > instants_;
    for (std::int32_t k = 0; k < demand.pages; ++k) {
      auto at = wraps ? free_.end() : free_.lower_bound(end);
      std::int32_t page = pages_;
      std::int32_t until = instants_;
      if (at == free_.end()) {
        ++pages_;
      } else {
        page = at->second.back();
        until = at->first;
        at->second.pop_back();
        if (at->second.empty()) free_.erase(at);
      }
      demand.got.push_back(page);
      if (!wraps) later_[end].emplace_back(page, until);
    }
  }

  std::int32_t instants_;
  std::int32_t pages_ = 0;
  std::map<std::int32_t, std::vector<std::int32_t>> free_;  // by the instant until which
  // By the instant from which: page, until when.
  std::map<std::int32_t, std::vector<std::pair<std::int32_t, std::int32_t>>> later_;
};

// Pages for all demands: the fewest of several begins of the period, since what goes on over its
// end takes pages that the rest cannot choose freely. As many as are needed at once is the end of
// it.
std::int32_t colour(std::vector<Demand>& demands, std::int32_t instants) {
  std::vector<std::int32_t> there(static_cast<std::size_t>(instants) + 1, 0);
  const auto add = [&](std::int32_t instant, std::int32_t pages) {
    there[static_cast<std::size_t>(instant)] += pages;
  };
  for (const Demand& each : demands) {
    add(each.begin, each.pages);
    add(each.end > instants ? each.end - instants : each.end, -each.pages);
    if (each.end > instants) add(0, each.pages);
  }
  for (std::size_t i = 1; i < there.size(); ++i) there[i] += there[i - 1];
  const std::int32_t needed = *std::max_element(there.begin(), there.end());

  constexpr std::int32_t kMostBegins = 64;
  std::vector<std::int32_t> begins = {
      static_cast<std::int32_t>(std::min_element(there.begin(), there.end() - 1) - there.begin())};
  for (std::int32_t i = 0; i < kMostBegins && i < instants; ++i) {
    begins.push_back(static_cast<std::int32_t>(std::int64_t{instants} * i / kMostBegins));
  }
  std::int32_t fewest = -1;
  std::vector<Demand> best;
  for (const std::int32_t begin : begins) {
    std::vector<Demand> turned = demands;
    for (Demand& each : turned) {
      const std::int32_t length = each.end - each.begin;
      each.begin = length == instants ? 0 : (each.begin - begin + instants) % instants;
      each.end = each.begin + length;
    }
    const std::int32_t pages = PageColours(instants).give(turned);
    if (fewest >= 0 && pages >= fewest) continue;
    fewest = pages;
    best = std::move(turned);
    if (fewest == needed) break;
  }
  for (std::size_t i = 0; i < demands.size(); ++i) demands[i].got = std::move(best[i].got);
  return fewest;
}

struct Packed {
  std::vector<Bin> bins;
  std::vector<Demand> demands;  // of ranges, 0 pages too; behind them of bins
  std::int32_t pages = 0;
};

// What of a range does not fill a page, and the pages that the rest of it fills.
struct Parts {
  std::vector<Demand> full;  // by range
  std::vector<PagePiece> pieces;
};

Parts parts_of(const LiveRanges& live, Bytes page_bytes) {
  Parts parts;
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    const LiveRange& range = live.ranges[r];
    const Bytes placed = placed_bytes(range.bytes);
    const Bytes full = placed / page_bytes;
    parts.full.push_back({range.begin, range.end, static_cast<std::int32_t>(full)});
    if (const Bytes rest = placed % page_bytes; rest > 0) {
      parts.pieces.push_back(
          {static_cast<std::int32_t>(r), rest, range.begin, range.end, full > 0});
    }
  }
  return parts;
}

Packed pack(const Parts& parts, const std::vector<Bytes>& bytes, std::int32_t instants,
            Bytes page_bytes, PackOrder by) {
  Packed packed{pack_pages(parts.pieces, page_bytes, bytes, by), parts.full};
  for (const Bin& bin : packed.bins) packed.demands.push_back({bin.begin, bin.end, 1});
  packed.pages = colour(packed.demands, instants);
  return packed;
}

}  // namespace

DevicePlacement place(const LiveRanges& live, Bytes page_bytes) {
  DevicePlacement placement;
  placement.page_bytes = page_bytes;
  placement.offset.assign(live.ranges.size(), 0);
  if (live.ranges.empty()) return placement;
  const std::vector<Bytes> bytes = live_bytes(live);
  placement.lower_bound = *std::max_element(bytes.begin(), bytes.end());

  const Parts parts = parts_of(live, page_bytes);
  Packed best = pack(parts, bytes, live.instants, page_bytes, PackOrder::longest);
  constexpr std::size_t kManyPieces = 4000;  // for more than one try
  for (const PackOrder by : {PackOrder::edges_longest, PackOrder::edges_largest}) {
    if (parts.pieces.size() > kManyPieces) break;
    Packed other = pack(parts, bytes, live.instants, page_bytes, by);
    if (other.pages < best.pages) best = std::move(other);
  }
  placement.pages = best.pages;

  std::vector<std::int32_t> piece_page(live.ranges.size(), -1);
  std::vector<Bytes> piece_offset(live.ranges.size(), 0);
  for (std::size_t b = 0; b < best.bins.size(); ++b) {
    for (const auto& [piece, offset] : best.bins[b].pieces) {
      const auto range =
          static_cast<std::size_t>(parts.pieces[static_cast<std::size_t>(piece)].range);
      piece_page[range] = best.demands[live.ranges.size() + b].got.front();
      piece_offset[range] = offset;
    }
  }
  std::vector<std::pair<std::size_t, std::int32_t>> pages;
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    const std::vector<std::int32_t>& full = best.demands[r].got;
    // A piece at a page's begin is what a range ends with, else it begins with it.
    const bool ends_with_it = piece_offset[r] == 0 && !full.empty();
    if (piece_page[r] >= 0 && !ends_with_it) {
      placement.offset[r] = piece_offset[r];
      pages.emplace_back(r, piece_page[r]);
    }
    for (const std::int32_t page : full) pages.emplace_back(r, page);
    if (piece_page[r] >= 0 && ends_with_it) pages.emplace_back(r, piece_page[r]);
  }
  placement.pages_of = Grouped<std::int32_t>(live.ranges.size(), pages);
  return placement;
}

}  // namespace stowage::simulator
