#include "gui/widgets/memory_image.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stowage::gui {
namespace {

constexpr int kHatch = 7;  // px between hatch lines

}  // namespace

int ByteAxis::rows(Bytes bytes) const {
  if (bytes <= 0) return 0;
  const auto rows = static_cast<int>(Wide{bytes} * height / std::max<Bytes>(top, 1));
  return std::clamp(rows, 1, height);
}

Bytes ByteAxis::bytes_at(int y) const {
  return static_cast<Bytes>(Wide{top} * std::clamp(height - y, 0, height) / std::max(height, 1));
}

std::vector<Bytes> ByteAxis::ticks(int most) const {
  std::vector<Bytes> ticks;
  const double least = static_cast<double>(top) / std::max(most, 1);
  double step = std::pow(10.0, std::floor(std::log10(std::max(least, 1.0))));
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    if (step * times >= least) {
      step *= times;
      break;
    }
  }
  const auto each = std::max<Bytes>(1, static_cast<Bytes>(step));
  for (Bytes at = each; at <= top; at += each) ticks.push_back(at);
  return ticks;
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
  const auto first_from = [&](std::size_t row, double t) {
    const auto ahead = [&](std::size_t i) { return static_cast<double>(memory.time[i]) < t; };
    std::size_t step = 1;
    while (row + step < memory.time.size() && ahead(row + step)) row += step, step *= 2;
    const auto begin = memory.time.begin() + static_cast<std::ptrdiff_t>(row);
    const auto end =
        memory.time.begin() + static_cast<std::ptrdiff_t>(std::min(row + step, memory.time.size()));
    return static_cast<std::size_t>(
        std::partition_point(begin, end,
                             [&](Nanoseconds at) { return static_cast<double>(at) < t; }) -
        memory.time.begin());
  };
  std::size_t first = memory.points(axis.begin(), axis.begin()).first;
  for (std::size_t x = 0; x < width; ++x) {
    const double begin = axis.time_at(static_cast<double>(x));
    const double end = axis.time_at(static_cast<double>(x) + 1);
    if (begin > static_cast<double>(axis.length())) break;
    const std::size_t last = std::max(first_from(first, end), first + 1);
    peaks[x] = static_cast<std::int64_t>(memory.total.extent(first, last).max_at);
    // What holds at the next column's begin is the last point here, unless one begins right there.
    const bool right_there =
        last < memory.time.size() && static_cast<double>(memory.time[last]) <= end;
    first = right_there ? last : last - 1;
  }
  return peaks;
}

QImage memory_image(const MemoryView& memory, const TimeAxis& axis, const ByteAxis& bytes,
                    const Theme& theme) {
  const auto width = static_cast<int>(axis.width());
  QImage image(width, bytes.height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  if (memory.empty() || memory.classes.empty() || image.isNull()) return image;
  const std::vector<std::int64_t> peaks = column_peaks(memory, axis);
  const std::size_t classes = memory.classes.size();
  // For every column the first row of each class, the top one first; then "none" for good.
  std::vector<std::int32_t> first_row(static_cast<std::size_t>(width) * (classes + 1));
  for (int x = 0; x < width; ++x) {
    std::int32_t* rows = &first_row[static_cast<std::size_t>(x) * (classes + 1)];
    Bytes below = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      if (peaks[static_cast<std::size_t>(x)] >= 0) {
        below += memory.bytes[c][static_cast<std::size_t>(peaks[static_cast<std::size_t>(x)])];
      }
      rows[c] = bytes.y_of(below);
    }
    rows[classes] = bytes.height;
  }
  struct Ink {
    QRgb plain;
    QRgb line;
    bool hatched;
  };
  std::vector<Ink> inks;
  for (const StorageClass storage_class : memory.classes) {
    const QColor color = theme.storage(storage_class);
    inks.push_back(
        {color.rgb(), mix(color, theme.background, 0.6).rgb(), theme.hatched(storage_class)});
  }
  // Row by row, since that is how memory lies; `above` is the class that each column is in.
  std::vector<std::int32_t> at(static_cast<std::size_t>(width), static_cast<std::int32_t>(classes));
  std::int32_t highest = bytes.height;
  for (int x = 0; x < width; ++x) {
    highest =
        std::min(highest, first_row[static_cast<std::size_t>(x) * (classes + 1) + classes - 1]);
  }
  for (int y = highest; y < bytes.height; ++y) {
    int phase = (y + kHatch - 1) % kHatch;  // of (x + y) % kHatch, one ahead
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
    for (int x = 0; x < width; ++x) {
      phase = phase + 1 == kHatch ? 0 : phase + 1;
      const std::int32_t* rows = &first_row[static_cast<std::size_t>(x) * (classes + 1)];
      std::int32_t& in = at[static_cast<std::size_t>(x)];
      // The stack from above: the highest class begins at rows[classes - 1].
      if (in == static_cast<std::int32_t>(classes)) {
        if (y < rows[classes - 1]) continue;
        --in;
      }
      while (in > 0 && y >= rows[in - 1]) --in;
      const Ink& ink = inks[static_cast<std::size_t>(in)];
      line[x] = ink.hatched && phase == 0 ? ink.line : ink.plain;
    }
  }
  return image;
}

}  // namespace stowage::gui
