#include "simulator/placement/page_bins.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

namespace stowage::simulator {
namespace {

// Pieces times the bins that are looked at for each, from the last one on.
constexpr std::size_t kMostLooks = 4'000'000;

// Time on a circle of instants.
class Circle {
 public:
  explicit Circle(const std::vector<Bytes>& live_bytes)
      : instants_(static_cast<std::int32_t>(live_bytes.size())),
        cost_(2 * live_bytes.size() + 1, 0) {
    const Bytes peak = *std::max_element(live_bytes.begin(), live_bytes.end());
    const Bytes near = peak - peak / 10;
    for (std::size_t i = 0; i < 2 * live_bytes.size(); ++i) {
      const Bytes above = live_bytes[i % live_bytes.size()] - near;
      constexpr std::int64_t kOfThePeak = 1000;
      const std::int64_t weight =
          above <= 0 ? 0 : above * kOfThePeak / std::max<Bytes>(peak - near, 1);
      cost_[i + 1] = cost_[i] + 1 + weight;
    }
  }
  [[nodiscard]] std::int32_t instants() const { return instants_; }
  // Of [begin, end) with begin <= instants.
  [[nodiscard]] std::int64_t cost(std::int32_t begin, std::int32_t end) const {
    return cost_[static_cast<std::size_t>(end)] - cost_[static_cast<std::size_t>(begin)];
  }

 private:
  std::int32_t instants_;
  std::vector<std::int64_t> cost_;  // of all ahead, twice around
};

struct Span {
  std::int32_t begin;
  std::int32_t end;
};

// A range as spans within one period: one, or two where it wraps.
std::vector<Span> spans_of(std::int32_t begin, std::int32_t end, std::int32_t instants) {
  if (end <= instants) return {{begin, end}};
  return {{0, end - instants}, {begin, instants}};
}

// Of a page, from and to: room that is used again from one look to the next.
using TakenBytes = std::vector<std::pair<Bytes, Bytes>>;

class OpenBin {
 public:
  OpenBin(Bytes page_bytes) : page_bytes_(page_bytes) {}

  struct Placed {
    std::int32_t piece;
    Bytes offset;
    Span last;  // of its spans
  };

  // Where the piece fits, and what is left beside it then; none: nowhere.
  struct Fit {
    Bytes offset;
    Bytes rest;
  };
  [[nodiscard]] std::optional<Fit> fit(const PagePiece& piece, const std::vector<Span>& spans,
                                       TakenBytes& taken) const {
    taken.clear();
    for (const Span& span : spans) {
      auto each = std::partition_point(taken_.begin(), taken_.end(), [&](const Taken& at) {
        return at.begin <= span.begin - longest_;
      });
      for (; each != taken_.end() && each->begin < span.end; ++each) {
        if (span.begin < each->end) taken.emplace_back(each->offset, each->offset + each->bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    taken.emplace_back(page_bytes_, page_bytes_);
    std::optional<Fit> best;
    Bytes free = 0;
    for (const auto& [begin, end] : taken) {
      const Bytes room = begin - free;
      const bool at_begin = free == 0;
      const bool at_end = begin == page_bytes_;
      if (room >= piece.bytes && (!piece.is_at_an_edge || at_begin || at_end)) {
        const Bytes rest = room - piece.bytes;
        // Beside what is there; from the page's end where that is the only edge.
        const Bytes offset = piece.is_at_an_edge && !at_begin ? begin - piece.bytes : free;
        if (!best || rest < best->rest) best = Fit{offset, rest};
      }
      free = std::max(free, end);
    }
    return best;
  }

  // Of the time that it adds; `all`: of all its time.
  [[nodiscard]] std::int64_t cost(const std::vector<Span>& spans, std::int64_t all,
                                  const Circle& circle) const {
    std::int64_t sum = all;
    for (const Span& span : spans) {
      auto open = std::partition_point(open_.begin(), open_.end(),
                                       [&](const Span& each) { return each.end <= span.begin; });
      for (; open != open_.end() && open->begin < span.end; ++open) {
        sum -= circle.cost(std::max(span.begin, open->begin), std::min(span.end, open->end));
      }
    }
    return sum;
  }

  void add(std::int32_t number, const PagePiece& piece, Bytes offset,
           const std::vector<Span>& spans) {
    for (const Span& span : spans) {
      open(span);
      const auto at = std::partition_point(
          taken_.begin(), taken_.end(), [&](const Taken& each) { return each.begin < span.begin; });
      taken_.insert(at, {span.begin, span.end, offset, piece.bytes});
      longest_ = std::max(longest_, span.end - span.begin);
    }
    placed_.push_back({number, offset, spans.back()});
  }

  [[nodiscard]] const std::vector<Span>& spans() const { return open_; }
  [[nodiscard]] const std::vector<Placed>& placed() const { return placed_; }

 private:
  void open(Span span) {
    const auto first = std::partition_point(
        open_.begin(), open_.end(), [&](const Span& each) { return each.end < span.begin; });
    auto last = first;
    for (; last != open_.end() && last->begin <= span.end; ++last) {
      span.begin = std::min(span.begin, last->begin);
      span.end = std::max(span.end, last->end);
    }
    open_.insert(open_.erase(first, last), span);
  }

  struct Taken {
    std::int32_t begin;  // instants
    std::int32_t end;
    Bytes offset;
    Bytes bytes;
  };

  Bytes page_bytes_;
  std::vector<Taken> taken_;  // by begin
  std::int32_t longest_ = 0;  // of them
  std::vector<Span> open_;    // in order, with time in between
  std::vector<Placed> placed_;
};

// By stretch of time and bin how many bytes are free at most: what is there for all of a stretch
// leaves no more to anything that is there for any of it. Says cheaply where a piece cannot fit.
class MostFree {
 public:
  MostFree(std::int32_t instants, Bytes page_bytes)
      : stretch_(instants / kStretches + 1),
        page_bytes_(page_bytes),
        bytes_(static_cast<std::size_t>(instants / stretch_ + 1)) {}

  void add_bin() {
    for (std::vector<Bytes>& each : bytes_) each.push_back(page_bytes_);
  }
  void take(std::size_t bin, Bytes bytes, const std::vector<Span>& spans) {
    for (const Span& span : spans) {
      const std::int32_t end = span.end / stretch_;
      for (std::int32_t s = (span.begin + stretch_ - 1) / stretch_; s < end; ++s) {
        bytes_[static_cast<std::size_t>(s)][bin] -= bytes;
      }
    }
  }

  // For one span: by bin, in its first, middle and last stretch.
  struct Of {
    const Bytes* first;
    const Bytes* middle;
    const Bytes* last;
    [[nodiscard]] bool holds(std::size_t bin, Bytes bytes) const {
      return first[bin] >= bytes && middle[bin] >= bytes && last[bin] >= bytes;
    }
  };
  [[nodiscard]] Of of(const Span& span) const {
    return {at(span.begin), at(span.begin + (span.end - span.begin) / 2),
            at(std::max(span.begin, span.end - 1))};
  }

 private:
  static constexpr std::int32_t kStretches = 256;
  [[nodiscard]] const Bytes* at(std::int32_t instant) const {
    return bytes_[static_cast<std::size_t>(instant / stretch_)].data();
  }

  std::int32_t stretch_;  // instants
  Bytes page_bytes_;
  std::vector<std::vector<Bytes>> bytes_;
};

// A bin for each time without a gap.
void close(const OpenBin& open, std::int32_t instants, std::vector<Bin>& bins) {
  const std::vector<Span>& spans = open.spans();
  const bool wraps = spans.size() > 1 && spans.front().begin == 0 && spans.back().end == instants;
  const std::size_t first = bins.size();
  for (const Span& span : spans) bins.push_back({span.begin, span.end, {}});
  const auto number_of = [&](const OpenBin::Placed& placed) {
    const Span& at = placed.last;
    const auto in = std::find_if(spans.begin(), spans.end(), [&](const Span& span) {
      return span.begin <= at.begin && at.end <= span.end;
    });
    const auto number = static_cast<std::size_t>(in - spans.begin());
    return first + (wraps && number == 0 ? spans.size() - 1 : number);
  };
  for (const OpenBin::Placed& placed : open.placed()) {
    bins[number_of(placed)].pieces.emplace_back(placed.piece, placed.offset);
  }
  if (!wraps) return;
  bins.back().end = instants + spans.front().end;
  bins.erase(bins.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace

std::vector<Bin> pack_pages(const std::vector<PagePiece>& pieces, Bytes page_bytes,
                            const std::vector<Bytes>& live_bytes, PackOrder by) {
  const Circle circle(live_bytes);
  std::vector<std::int32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto piece = [&](std::int32_t number) -> const PagePiece& {
    return pieces[static_cast<std::size_t>(number)];
  };
  const auto length = [&](std::int32_t number) { return piece(number).end - piece(number).begin; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    if (by != PackOrder::longest && piece(a).is_at_an_edge != piece(b).is_at_an_edge) {
      return piece(a).is_at_an_edge;
    }
    const auto rank = [&](std::int32_t of) {
      return by == PackOrder::edges_largest ? std::pair<Bytes, Bytes>(piece(of).bytes, length(of))
                                            : std::pair<Bytes, Bytes>(length(of), piece(of).bytes);
    };
    return rank(a) > rank(b);
  });
  std::vector<OpenBin> open;
  MostFree most_free(circle.instants(), page_bytes);
  TakenBytes taken;
  std::size_t last = 0;  // bin that a piece went into
  const std::size_t most = std::max<std::size_t>(kMostLooks / (pieces.size() + 1), 64);
  for (const std::int32_t number : order) {
    const PagePiece& each = piece(number);
    const std::vector<Span> spans = spans_of(each.begin, each.end, circle.instants());
    std::int64_t all = 0;
    for (const Span& span : spans) all += circle.cost(span.begin, span.end);
    std::int64_t least = all;
    std::optional<OpenBin::Fit> best;
    std::size_t at = open.size();
    const MostFree::Of room = most_free.of(spans.back());
    std::size_t next = last;
    for (std::size_t looks = std::min(open.size(), most); looks > 0; --looks) {
      const std::size_t b = next;
      next = b + 1 == open.size() ? 0 : b + 1;
      if (!room.holds(b, each.bytes)) continue;
      const std::int64_t cost = open[b].cost(spans, all, circle);
      if (cost > least || (best && cost == least && best->rest == 0)) continue;
      const auto fit = open[b].fit(each, spans, taken);
      if (!fit) continue;
      if (best && cost == least && fit->rest >= best->rest) continue;
      least = cost;
      best = fit;
      at = b;
    }
    if (at == open.size()) {
      open.emplace_back(page_bytes);
      most_free.add_bin();
    }
    last = at;
    most_free.take(at, each.bytes, spans);
    open[at].add(number, each, best ? best->offset : 0, spans);
  }
  std::vector<Bin> bins;
  for (const OpenBin& each : open) close(each, circle.instants(), bins);
  return bins;
}

}  // namespace stowage::simulator
