#include "gui/widgets/memory_legend.h"

#include <algorithm>
#include <numeric>

#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

int side_of(const QFontMetrics& metrics) {
  return metrics.height() - 4;
}

int width_of(const MemoryView& memory, std::size_t row, const QFontMetrics& metrics) {
  return metrics.horizontalAdvance(band_word(memory, row)) + side_of(metrics) + 16;
}

}  // namespace

std::vector<std::size_t> legend_of(const MemoryView& memory, const QFontMetrics& metrics,
                                   int width) {
  std::vector<std::size_t> rows(memory.bytes.size());
  std::iota(rows.rbegin(), rows.rend(), std::size_t{0});
  int needed = 0;
  for (const std::size_t row : rows) needed += width_of(memory, row, metrics);
  if (needed <= width || memory.empty()) return rows;
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    const bool is_class = a < memory.classes.size();
    if (is_class != (b < memory.classes.size())) return !is_class;
    return memory.bytes[a][memory.peak_at] > memory.bytes[b][memory.peak_at];
  });
  int left = width - metrics.horizontalAdvance(QStringLiteral("…"));
  std::size_t count = 0;
  while (count < rows.size() && left >= width_of(memory, rows[count], metrics)) {
    left -= width_of(memory, rows[count++], metrics);
  }
  rows.resize(count);
  std::sort(rows.rbegin(), rows.rend());
  return rows;
}

void paint_legend(QPainter& painter, const MemoryView& memory, const Theme& theme,
                  const QColor& ink, const QRect& space) {
  const QFontMetrics metrics = painter.fontMetrics();
  const int side = side_of(metrics);
  const std::vector<std::size_t> rows = legend_of(memory, metrics, space.width());
  int x = space.left();
  painter.setBrush(Qt::NoBrush);
  for (const std::size_t row : rows) {
    const Theme::Fill fill = theme.band(memory, row);
    const QRect swatch(x, space.top(), side, side);
    painter.fillRect(swatch, fill.color);
    if (fill.line != fill.color) painter.fillRect(swatch, QBrush(fill.line, Qt::BDiagPattern));
    painter.setPen(theme.frame);
    painter.drawRect(swatch.adjusted(0, 0, -1, -1));
    painter.setPen(ink);
    painter.drawText(x + side + 4, space.top() + metrics.ascent() - 1, band_word(memory, row));
    x += width_of(memory, row, metrics);
  }
  if (rows.size() < memory.bytes.size()) {
    painter.setPen(ink);
    painter.drawText(x, space.top() + metrics.ascent() - 1, QStringLiteral("…"));
  }
}

}  // namespace stowage::gui
