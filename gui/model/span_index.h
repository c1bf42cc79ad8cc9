// The spans of one lane, for painting a million of them in a frame: what is narrower than a pixel
// is folded into runs that a binary search jumps over, so a frame costs O(pixels log spans) and not
// O(spans). (Painting each took 263 ms at 10^6 spans on a 1920 px wide window, folding 4 ms.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gui/model/time_axis.h"
#include "traces/units.h"

namespace stowage::gui {

// What is painted as one rectangle: one span, or the `count` spans that share a pixel.
struct SpanRun {
  double x0 = 0;  // in pixels of the axis, cut to its width
  double x1 = 0;
  std::uint32_t first = 0;  // rows of the lane
  std::uint32_t count = 0;
  double busy = 1;  // share of the run that is covered by its spans; 1 for a single span
  [[nodiscard]] bool folded() const { return count > 1; }
};

class SpanIndex {
 public:
  SpanIndex() = default;
  // Spans in order of begin, each with end >= begin and ahead of the next one's begin: rows_of()
  // puts overlapping ones into several lanes. 16.5 bytes a span.
  SpanIndex(std::vector<Nanoseconds> begin, std::vector<Nanoseconds> end);

  bool operator==(const SpanIndex&) const = default;

  [[nodiscard]] std::size_t size() const { return begin_.size(); }
  [[nodiscard]] Nanoseconds begin(std::size_t row) const { return begin_[row]; }
  [[nodiscard]] Nanoseconds end(std::size_t row) const { return end_[row]; }

  // The runs that the axis shows, left to right. Every span that touches the visible time is in
  // exactly one of them. Cost: O((width + runs) log spans).
  void runs(const TimeAxis& axis, std::vector<SpanRun>& out) const;

  // The span at a time, -1 = none; when nothing is hit, the nearest one closer than `slack` ns.
  [[nodiscard]] std::int64_t at(double time, double slack = 0) const;

  // Time in [begin, end) that spans cover. O(log spans).
  [[nodiscard]] Nanoseconds covered(Nanoseconds begin, Nanoseconds end) const;

 private:
  // First row that ends behind `time`; first one that begins at or behind it.
  [[nodiscard]] std::size_t first_ending_behind(double time) const;
  [[nodiscard]] std::size_t first_from(double time) const;
  // Durations of the rows ahead of `row`, which may be size(). O(1).
  [[nodiscard]] Nanoseconds sum_ahead(std::size_t row) const;

  std::vector<Nanoseconds> begin_;
  std::vector<Nanoseconds> end_;
  // Durations of the rows ahead of every kSumEvery-th row; those between are added when asked for.
  static constexpr std::size_t kSumEvery = 16;
  std::vector<Nanoseconds> sum_;
};

// For spans in order of begin that may overlap: a number of lanes in which none do, lowest first.
// At most `most` lanes; what would need more shares the last one. O(spans * most).
[[nodiscard]] std::vector<std::uint8_t> rows_of(const std::vector<Nanoseconds>& begin,
                                                const std::vector<Nanoseconds>& end,
                                                std::uint8_t most = 4);

}  // namespace stowage::gui
