#include "gui/widgets/memory_image.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace stowage::gui {
namespace {

constexpr int kHatch = 7;  // px between hatch lines; a row's pixels are those of so many rows above

// Where a class, or the outline, begins in a column.
struct Begin {
  std::int32_t column;
  std::int32_t ink;
};

struct Ink {
  QRgb plain;
  QRgb line;  // of the hatch
};

// Where classes begin, by row: the lists of all rows behind one another.
class Begins {
 public:
  // `peaks` as of column_peaks(), of which the first `width` count.
  Begins(std::vector<std::int64_t> peaks, std::size_t width, const MemoryView& memory,
         const ByteAxis& bytes, Outline outline)
      : first_(static_cast<std::size_t>(bytes.height) + 2, 0) {
    peaks.resize(std::min(width, peaks.size()));
    const auto bands = static_cast<std::int32_t>(memory.bytes.size());
    std::vector<std::pair<std::int32_t, Begin>> found;  // row, what
    found.reserve(peaks.size() * (memory.bytes.size() + 2));
    for (std::size_t x = 0; x < peaks.size(); ++x) {
      if (peaks[x] < 0) continue;
      const auto column = static_cast<std::int32_t>(x);
      std::int32_t above = bytes.height;  // first row of what is below in the stack
      Bytes sum = 0;
      for (std::int32_t c = 0; c < bands; ++c) {
        sum += memory.bytes[static_cast<std::size_t>(c)][static_cast<std::size_t>(peaks[x])];
        const std::int32_t row = bytes.y_of(sum);
        if (row < above) found.emplace_back(row, Begin{column, c});
        above = std::min(above, row);
      }
      if (above == bytes.height) continue;
      const bool edge = outline == Outline::firm || (outline == Outline::dotted && x % 6 >= 3);
      if (edge) edge_.emplace_back(above, column);
    }
    for (const auto& each : found) ++first_[static_cast<std::size_t>(each.first) + 1];
    for (std::size_t y = 1; y < first_.size(); ++y) first_[y] += first_[y - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    begins_.resize(found.size());
    for (const auto& [row, begin] : found) begins_[next[static_cast<std::size_t>(row)]++] = begin;
  }

  template <class F>
  void at_row(int y, F&& f) const {
    const auto row = static_cast<std::size_t>(y);
    for (std::uint32_t i = first_[row]; i < first_[row + 1]; ++i) f(begins_[i]);
  }
  [[nodiscard]] const std::vector<std::pair<std::int32_t, std::int32_t>>& edge() const {
    return edge_;
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<Begin> begins_;
  std::vector<std::pair<std::int32_t, std::int32_t>> edge_;  // row, column
};

}  // namespace

int ByteAxis::rows(Bytes bytes) const {
  if (bytes <= 0) return 0;
  const Bytes whole = std::max<Bytes>(top, 1);
  // Wide numbers divide slowly, and this is asked for thousands of times a frame.
  const bool fits = bytes < std::numeric_limits<Bytes>::max() / std::max(height, 1);
  const auto rows =
      static_cast<int>(fits ? bytes * height / whole : Bytes(Wide{bytes} * height / whole));
  return std::clamp(rows, 1, height);
}

Bytes ByteAxis::bytes_at(int y) const {
  return static_cast<Bytes>(Wide{top} * std::clamp(height - y, 0, height) / std::max(height, 1));
}

Bytes top_of(Bytes peak, Bytes budget) {
  const Bytes most = std::max({peak, budget, Bytes{1}});
  return most + std::max<Bytes>(1, most / 12);
}

std::vector<std::int64_t> column_peaks(const MemoryView& memory, const TimeAxis& axis) {
  const auto width = static_cast<std::size_t>(axis.width());
  std::vector<std::int64_t> peaks(width, -1);
  if (memory.empty()) return peaks;
  // Columns go left to right: the end of one is sought close behind the end of the one before.
  // It is sought around where it would be had this column as many points as the one before.
  std::size_t step = 1;
  const auto first_from = [&](std::size_t row, double t) {
    const std::size_t points = memory.time.size();
    const auto ahead = [&](std::size_t i) { return static_cast<double>(memory.time[i]) < t; };
    std::size_t low = row;  // none ahead of it is sought
    std::size_t high = std::min(row + step, points);
    std::size_t stride = 1 + step / 8;
    while (high < points && ahead(high))
      low = high + 1, high = std::min(high + stride, points), stride *= 2;
    stride = 1 + step / 8;
    while (high - low > 2 * stride && !ahead(high - stride)) high -= stride, stride *= 2;
    const auto begin = memory.time.begin();
    return static_cast<std::size_t>(
        std::partition_point(begin + static_cast<std::ptrdiff_t>(low),
                             begin + static_cast<std::ptrdiff_t>(high),
                             [&](Nanoseconds at) { return static_cast<double>(at) < t; }) -
        begin);
  };
  std::size_t first = memory.points(axis.begin(), axis.begin()).first;
  for (std::size_t x = 0; x < width; ++x) {
    const double begin = axis.time_at(static_cast<double>(x));
    const double end = axis.time_at(static_cast<double>(x) + 1);
    if (begin > static_cast<double>(axis.length())) break;
    const std::size_t last = std::max(first_from(first, end), first + 1);
    step = last - first;
    peaks[x] = static_cast<std::int64_t>(memory.total.extent(first, last).max_at);
    // What holds at the next column's begin is the last point here, unless one begins right there.
    const bool right_there =
        last < memory.time.size() && static_cast<double>(memory.time[last]) <= end;
    first = right_there ? last : last - 1;
  }
  return peaks;
}

void paint_memory(const MemoryView& memory, const TimeAxis& axis, const ByteAxis& bytes,
                  const CurveInk& ink, QImage& canvas, const QPoint& at) {
  const auto width = static_cast<std::size_t>(
      std::clamp(canvas.width() - at.x(), 0, static_cast<int>(axis.width())));
  const int height = std::min(bytes.height, canvas.height() - at.y());
  std::vector<Ink> inks;
  for (std::size_t band = 0; band < memory.bytes.size(); ++band) {
    const Theme::Fill fill = ink.theme.band(memory, band);
    inks.push_back({fill.color.rgb(), fill.line.rgb()});
  }
  const Begins begins(column_peaks(memory, axis), width, memory, bytes, ink.outline);
  std::vector<QRgb> ring(kHatch * width, ink.paper);  // the last kHatch rows
  std::vector<std::uint8_t> is_curve(width, 0);
  for (int y = 0; y < height; ++y) {
    QRgb* row = ring.data() + static_cast<std::size_t>(y % kHatch) * width;
    // A class that began up to kHatch - 1 rows above is not in this row of the ring yet.
    for (int since = std::max(0, y - kHatch + 1); since <= y; ++since) {
      begins.at_row(since, [&](const Begin& begin) {
        const Ink& of = inks[static_cast<std::size_t>(begin.ink)];
        row[begin.column] = (begin.column + y) % kHatch == 0 ? of.line : of.plain;
        is_curve[static_cast<std::size_t>(begin.column)] = 1;
      });
    }
    auto* line = reinterpret_cast<QRgb*>(canvas.scanLine(at.y() + y)) + at.x();
    std::copy(row, row + width, line);
    const auto& grid = ink.grid_rows;
    if (std::find(grid.begin(), grid.end(), y) == grid.end()) continue;
    for (std::size_t x = 0; x < width; ++x) {
      if (is_curve[x] == 0) line[x] = ink.grid;
    }
  }
  for (const auto& [y, x] : begins.edge()) {
    if (y >= height) continue;
    reinterpret_cast<QRgb*>(canvas.scanLine(at.y() + y))[at.x() + x] = ink.theme.text.rgb();
  }
}

}  // namespace stowage::gui
