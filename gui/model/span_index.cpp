#include "gui/model/span_index.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stowage::gui {

SpanIndex::SpanIndex(std::vector<Nanoseconds> begin, std::vector<Nanoseconds> end)
    : begin_(std::move(begin)), end_(std::move(end)) {
  sum_.reserve(begin_.size() / kSumEvery + 1);
  Nanoseconds sum = 0;
  for (std::size_t i = 0; i <= begin_.size(); ++i) {
    if (i % kSumEvery == 0) sum_.push_back(sum);
    if (i < begin_.size()) sum += end_[i] - begin_[i];
  }
}

Nanoseconds SpanIndex::sum_ahead(std::size_t row) const {
  Nanoseconds sum = sum_[row / kSumEvery];
  for (std::size_t i = row / kSumEvery * kSumEvery; i < row; ++i) sum += end_[i] - begin_[i];
  return sum;
}

std::size_t SpanIndex::first_ending_behind(double time) const {
  const auto at = std::partition_point(
      end_.begin(), end_.end(), [&](Nanoseconds e) { return static_cast<double>(e) < time; });
  return static_cast<std::size_t>(at - end_.begin());
}

std::size_t SpanIndex::first_from(double time) const {
  const auto at = std::partition_point(
      begin_.begin(), begin_.end(), [&](Nanoseconds b) { return static_cast<double>(b) < time; });
  return static_cast<std::size_t>(at - begin_.begin());
}

void SpanIndex::runs(const TimeAxis& axis, std::vector<SpanRun>& out) const {
  out.clear();
  const double pixel = axis.ns_per_pixel();
  const double width = axis.width();
  const std::size_t stop = first_from(axis.end());
  std::size_t row = first_ending_behind(axis.begin());
  while (row < stop) {
    const double x0 = axis.x_of(begin_[row]);
    const double x1 = axis.x_of(end_[row]);
    const double column = std::floor(std::max(x0, 0.0));
    if (x1 >= column + 1) {
      out.push_back(
          {std::max(x0, 0.0), std::min(x1, width), static_cast<std::uint32_t>(row), 1, 1});
      ++row;
      continue;
    }
    // All spans that begin in this pixel column, up to the first that is seen beyond it.
    const double behind = axis.begin() + (column + 1) * pixel;
    std::size_t last = row + 1;
    if (last < stop && static_cast<double>(begin_[last]) < behind) {
      // Gallop: most columns hold few spans, some hold thousands.
      std::size_t step = 1;
      while (last + step < stop && static_cast<double>(begin_[last + step]) < behind) {
        last += step;
        step *= 2;
      }
      const auto end = begin_.begin() + static_cast<std::ptrdiff_t>(std::min(last + step, stop));
      last = static_cast<std::size_t>(
          std::partition_point(begin_.begin() + static_cast<std::ptrdiff_t>(last), end,
                               [&](Nanoseconds b) { return static_cast<double>(b) < behind; }) -
          begin_.begin());
      // The last one may reach into further columns: it is seen by itself.
      if (last > row + 1 && axis.x_of(end_[last - 1]) >= column + 1) --last;
    }
    SpanRun run;
    run.first = static_cast<std::uint32_t>(row);
    run.count = static_cast<std::uint32_t>(last - row);
    if (run.count == 1) {
      run.x0 = std::max(x0, 0.0);
      run.x1 = std::clamp(x1, run.x0, width);
    } else {
      run.x0 = column;
      run.x1 = std::min(column + 1, width);
      run.busy = std::min(1.0, static_cast<double>(sum_ahead(last) - sum_ahead(row)) / pixel);
    }
    out.push_back(run);
    row = last;
  }
}

std::int64_t SpanIndex::at(double time, double slack) const {
  const std::size_t next = first_from(std::nextafter(time, time + 1));
  // Only the neighbours can be near.
  std::int64_t near = -1;
  double distance = slack;
  for (const std::size_t row : {next - 1, next}) {
    if (row >= begin_.size()) continue;  // also the -1 ahead of the first one
    const auto begin = static_cast<double>(begin_[row]);
    const auto end = static_cast<double>(end_[row]);
    if (begin <= time && time < end) return static_cast<std::int64_t>(row);
    const double off = std::max(begin - time, time - end);
    if (off >= distance) continue;
    near = static_cast<std::int64_t>(row);
    distance = off;
  }
  return near;
}

Nanoseconds SpanIndex::covered(Nanoseconds begin, Nanoseconds end) const {
  if (end <= begin) return 0;
  const std::size_t stop = first_from(static_cast<double>(end));
  const std::size_t row = first_ending_behind(static_cast<double>(begin));
  if (row >= stop) return 0;
  // The first and the last one may be cut.
  return std::max<Nanoseconds>(0, sum_ahead(stop) - sum_ahead(row) -
                                      std::max<Nanoseconds>(0, begin - begin_[row]) -
                                      std::max<Nanoseconds>(0, end_[stop - 1] - end));
}

std::vector<std::uint8_t> rows_of(const std::vector<Nanoseconds>& begin,
                                  const std::vector<Nanoseconds>& end, std::uint8_t most) {
  std::vector<std::uint8_t> rows;
  rows.reserve(begin.size());
  std::vector<Nanoseconds> ends;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    std::size_t row = 0;
    while (row < ends.size() && ends[row] > begin[i]) ++row;
    if (row == ends.size()) {
      if (ends.size() < most) {
        ends.push_back(0);
      } else {
        row = ends.size() - 1;
      }
    }
    ends[row] = std::max(ends[row], end[i]);
    rows.push_back(static_cast<std::uint8_t>(row));
  }
  return rows;
}

}  // namespace stowage::gui
