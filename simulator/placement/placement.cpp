#include "simulator/placement/placement.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "simulator/placement/page_bins.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// So many pages for a time.
struct Demand {
  std::int32_t begin = 0;
  std::int32_t end = 0;  // as of a range
  std::int32_t pages = 0;
};

// Which pages are free, and until when: by number, or only how many where nobody asks which.
struct PageNumbers {
  std::vector<std::int32_t> numbers;

  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(numbers.size()); }
  // Behind those that are there: `pages` new ones, the first of them `first`.
  void add_new(std::int32_t first, std::int32_t pages) {
    for (std::int32_t k = 0; k < pages; ++k) numbers.push_back(first + k);
  }
  void add(const PageNumbers& other) {
    numbers.insert(numbers.end(), other.numbers.begin(), other.numbers.end());
  }
  // The last ones, the very last first.
  [[nodiscard]] PageNumbers take(std::int32_t pages) {
    PageNumbers taken;
    taken.numbers.assign(numbers.rbegin(), numbers.rbegin() + pages);
    numbers.resize(numbers.size() - static_cast<std::size_t>(pages));
    return taken;
  }
};
struct PageCount {
  std::int32_t pages = 0;

  [[nodiscard]] std::int32_t count() const { return pages; }
  void add_new(std::int32_t /*first*/, std::int32_t more) { pages += more; }
  void add(const PageCount& other) { pages += other.pages; }
  [[nodiscard]] PageCount take(std::int32_t some) {
    pages -= some;
    return {some};
  }
};

// Gives pages to demands. On a line that is exact: as many as are needed at once. What is there at
// the period's begin already gets its pages first, and these are taken again from its begin on, so
// that a demand gets those that are free for long enough, of these the ones that are taken again
// first. Cost: O(demands log, and the pages where they have numbers).
template <class Pages>
class PageColours {
 public:
  explicit PageColours(std::int32_t instants) : instants_(instants) {}

  // How many pages all take; `got`: those of a demand, by its row.
  template <class Got>
  std::int32_t give(const std::vector<Demand>& demands, Got&& got) {
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < demands.size(); ++d) {
      const Demand& each = demands[d];
      if (each.end <= instants_) {
        order.push_back(d);
        continue;
      }
      Pages pages;
      pages.add_new(pages_, each.pages);
      pages_ += each.pages;
      got(d, pages);
      // Behind its end in this period, until it begins again.
      later_[each.end - instants_][each.begin].add(pages);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return demands[a].begin < demands[b].begin;
    });
    for (const std::size_t d : order) {
      give_back(demands[d].begin);
      take(demands[d], [&](const Pages& pages) { got(d, pages); });
    }
    return pages_;
  }

 private:
  using ByUntil = std::map<std::int32_t, Pages>;

  void give_back(std::int32_t now) {
    for (auto at = later_.begin(); at != later_.end() && at->first <= now; at = later_.erase(at)) {
      for (const auto& [until, pages] : at->second) free_[until].add(pages);
    }
  }

  // Pages that are free until its end at least.
  template <class Got>
  void take(const Demand& demand, Got&& got) {
    if (demand.pages == 0) return;
    ByUntil& later = later_[demand.end];
    std::int32_t missing = demand.pages;
    for (auto at = free_.lower_bound(demand.end); at != free_.end() && missing > 0;) {
      const Pages some = at->second.take(std::min(missing, at->second.count()));
      missing -= some.count();
      got(some);
      later[at->first].add(some);
      at = at->second.count() == 0 ? free_.erase(at) : std::next(at);
    }
    if (missing == 0) return;
    Pages fresh;
    fresh.add_new(pages_, missing);
    pages_ += missing;
    got(fresh);
    later[instants_].add(fresh);
  }

  std::int32_t instants_;
  std::int32_t pages_ = 0;
  ByUntil free_;                           // by the instant until which
  std::map<std::int32_t, ByUntil> later_;  // by the instant from which
};

// The same on a period that begins elsewhere.
std::vector<Demand> turned_to(std::int32_t begin, const std::vector<Demand>& demands,
                              std::int32_t instants) {
  std::vector<Demand> turned = demands;
  for (Demand& each : turned) {
    const std::int32_t length = each.end - each.begin;
    each.begin = length == instants ? 0 : (each.begin - begin + instants) % instants;
    each.end = each.begin + length;
  }
  return turned;
}

// How many pages demands take, and from which begin of the period on.
struct Colouring {
  std::int32_t pages = 0;
  std::int32_t begin = 0;
};

// The fewest pages of several begins of the period, since what goes on over its end takes pages
// that the rest cannot choose freely. As many as are needed at once is the end of it.
Colouring colouring(const std::vector<Demand>& demands, std::int32_t instants) {
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
  Colouring best{-1, 0};
  for (const std::int32_t begin : begins) {
    const std::int32_t pages = PageColours<PageCount>(instants).give(
        turned_to(begin, demands, instants), [](std::size_t, const PageCount&) {});
    if (best.pages >= 0 && pages >= best.pages) continue;
    best = {pages, begin};
    if (pages == needed) break;
  }
  return best;
}

// By demand, in order of address.
std::vector<std::vector<std::int32_t>> numbers_of(const Colouring& colouring,
                                                  const std::vector<Demand>& demands,
                                                  std::int32_t instants) {
  std::vector<std::vector<std::int32_t>> got(demands.size());
  const std::int32_t pages = PageColours<PageNumbers>(instants).give(
      turned_to(colouring.begin, demands, instants), [&](std::size_t d, const PageNumbers& some) {
        got[d].insert(got[d].end(), some.numbers.begin(), some.numbers.end());
      });
  STOWAGE_ASSERT(pages == colouring.pages);
  return got;
}

struct Packed {
  std::vector<Bin> bins;
  std::vector<Demand> demands;  // of ranges, 0 pages too; behind them of bins
  Colouring colouring{};
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
  packed.colouring = colouring(packed.demands, instants);
  return packed;
}

// The fewest pages of all orders.
Packed best_packing(const LiveRanges& live, const Parts& parts, Bytes page_bytes,
                    const std::vector<Bytes>& bytes) {
  const Bytes peak = *std::max_element(bytes.begin(), bytes.end());
  const Bytes fewest = (peak + page_bytes - 1) / page_bytes;
  Packed best = pack(parts, bytes, live.instants, page_bytes, PackOrder::longest);
  constexpr std::size_t kManyPieces = 4000;  // for more than one try
  for (const PackOrder by : {PackOrder::edges_longest, PackOrder::edges_largest}) {
    if (parts.pieces.size() > kManyPieces || best.colouring.pages == fewest) break;
    Packed other = pack(parts, bytes, live.instants, page_bytes, by);
    if (other.colouring.pages < best.colouring.pages) best = std::move(other);
  }
  return best;
}

// Which pages go the same ways: those that the same ranges have as full ones. A page with pieces
// goes alone.
class Chunks {
 public:
  // By range its full pages; by page whether pieces lie in it.
  Chunks(const std::vector<std::vector<std::int32_t>>& full, const std::vector<bool>& has_pieces) {
    std::vector<std::pair<std::size_t, std::int32_t>> ranges;
    for (std::size_t r = 0; r < full.size(); ++r) {
      for (const std::int32_t page : full[r]) {
        ranges.emplace_back(static_cast<std::size_t>(page), static_cast<std::int32_t>(r));
      }
    }
    const Grouped<std::int32_t> ranges_of(has_pieces.size(), ranges);
    const auto compare = [&](std::size_t a, std::size_t b) {
      const auto x = ranges_of[a];
      const auto y = ranges_of[b];
      return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
    };
    std::vector<std::size_t> order(has_pieces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return compare(a, b) < 0; });
    number_.resize(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const bool goes_on = k > 0 && compare(order[k - 1], order[k]) == 0 &&
                           !has_pieces[order[k - 1]] && !has_pieces[order[k]];
      if (!goes_on) first_.push_back(static_cast<std::int32_t>(k));
      number_[order[k]] = static_cast<std::int32_t>(k);
    }
  }

  [[nodiscard]] std::int32_t number(std::int32_t page) const {
    return number_[static_cast<std::size_t>(page)];
  }
  [[nodiscard]] std::vector<std::int32_t> take_first() && { return std::move(first_); }

 private:
  std::vector<std::int32_t> number_;  // by page: its new one
  std::vector<std::int32_t> first_;
};

// The page of each range's piece, -1 = it has none, and where in that it lies.
struct PlacedPieces {
  std::vector<std::int32_t> page;
  std::vector<Bytes> offset;
  std::vector<bool> has_pieces;  // by page
};

PlacedPieces placed_pieces(const Packed& packed, const Parts& parts,
                           const std::vector<std::vector<std::int32_t>>& numbers) {
  const std::size_t ranges = parts.full.size();
  PlacedPieces placed{std::vector<std::int32_t>(ranges, -1), std::vector<Bytes>(ranges, 0),
                      std::vector<bool>(static_cast<std::size_t>(packed.colouring.pages), false)};
  for (std::size_t b = 0; b < packed.bins.size(); ++b) {
    const std::int32_t page = numbers[ranges + b].front();
    placed.has_pieces[static_cast<std::size_t>(page)] = true;
    for (const auto& [piece, offset] : packed.bins[b].pieces) {
      const auto range =
          static_cast<std::size_t>(parts.pieces[static_cast<std::size_t>(piece)].range);
      placed.page[range] = page;
      placed.offset[range] = offset;
    }
  }
  return placed;
}

// With each second place taken all the time: a copy where there are any.
class Taken {
 public:
  explicit Taken(const LiveRanges& there) : there_(there) {
    const bool has_seconds = std::any_of(there.ranges.begin(), there.ranges.end(),
                                         [](const LiveRange& range) { return range.is_second; });
    if (has_seconds) taken_ = taken_ranges(there);
  }
  [[nodiscard]] const LiveRanges& live() const { return taken_ ? *taken_ : there_; }

 private:
  const LiveRanges& there_;
  std::optional<LiveRanges> taken_;
};

// What is there at each instant of what is placed: near the peak goes by that alone.
std::vector<Bytes> packed_bytes(const LiveRanges& live) {
  std::vector<Bytes> bytes = live_bytes(live);
  for (Bytes& each : bytes) each -= live.outside.active;
  return bytes;
}

}  // namespace

Bytes page_bytes(const LiveRanges& live, const PageChoice& choice) {
  STOWAGE_ASSERT(choice.smallest > 0);
  for (Bytes page = choice.smallest;; page *= 2) {
    std::int64_t pages = 0;
    bool shrinks = false;
    for (const LiveRange& range : live.ranges) {
      pages += (range.bytes + page - 1) / page;
      shrinks = shrinks || range.bytes > page;
    }
    if (pages <= choice.most || !shrinks) return page;
  }
}

DevicePlacement place(const LiveRanges& live) {
  return place(live, page_bytes(live, kDevicePages));
}

PlannedBytes placed_size(const LiveRanges& live) {
  return placed_size(live, page_bytes(live, kDevicePages));
}

DevicePlacement place(const LiveRanges& there, Bytes page_bytes) {
  const Taken taken(there);
  const LiveRanges& live = taken.live();
  DevicePlacement placement;
  placement.page_bytes = page_bytes;
  placement.offset.assign(live.ranges.size(), 0);
  if (live.ranges.empty()) return placement;
  const std::vector<Bytes> bytes = packed_bytes(there);
  placement.lower_bound = *std::max_element(bytes.begin(), bytes.end());
  const Parts parts = parts_of(live, page_bytes);
  const Packed packed = best_packing(live, parts, page_bytes, bytes);
  placement.pages = packed.colouring.pages;
  std::vector<std::vector<std::int32_t>> numbers =
      numbers_of(packed.colouring, packed.demands, live.instants);
  const PlacedPieces pieces = placed_pieces(packed, parts, numbers);
  numbers.resize(live.ranges.size());
  Chunks chunks(numbers, pieces.has_pieces);

  std::vector<std::pair<std::size_t, std::int32_t>> pages;
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    std::vector<std::int32_t>& full = numbers[r];
    for (std::int32_t& page : full) page = chunks.number(page);
    std::sort(full.begin(), full.end());
    // A piece at a page's begin is what a range ends with, else it begins with it.
    const bool ends_with_it = pieces.offset[r] == 0 && !full.empty();
    if (pieces.page[r] >= 0 && !ends_with_it) {
      placement.offset[r] = pieces.offset[r];
      pages.emplace_back(r, chunks.number(pieces.page[r]));
    }
    for (const std::int32_t page : full) pages.emplace_back(r, page);
    if (pieces.page[r] >= 0 && ends_with_it) pages.emplace_back(r, chunks.number(pieces.page[r]));
  }
  placement.pages_of = Grouped<std::int32_t>(live.ranges.size(), pages);
  placement.chunks = std::move(chunks).take_first();
  return placement;
}

PlannedBytes placed_size(const LiveRanges& there, Bytes page_bytes) {
  const Taken taken(there);
  const LiveRanges& live = taken.live();
  if (live.ranges.empty()) return {live.outside.reserved, live.outside.active};
  const std::vector<Bytes> bytes = packed_bytes(there);
  const Packed packed = best_packing(live, parts_of(live, page_bytes), page_bytes, bytes);
  return {packed.colouring.pages * page_bytes + live.outside.reserved,
          *std::max_element(bytes.begin(), bytes.end()) + live.outside.active};
}

}  // namespace stowage::simulator
