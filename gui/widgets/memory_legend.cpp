#include "gui/widgets/memory_legend.h"

#include <algorithm>
#include <numeric>

#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

int side_of(const QFontMetrics& metrics) {
  return metrics.height() - 4;
}

int width_of(StorageClass storage_class, const QFontMetrics& metrics) {
  return metrics.horizontalAdvance(word_for(storage_class)) + side_of(metrics) + 16;
}

}  // namespace

std::vector<std::size_t> legend_of(const MemoryView& memory, const QFontMetrics& metrics,
                                   int width) {
  const auto& classes = memory.classes;
  std::vector<std::size_t> rows(classes.size());
  std::iota(rows.rbegin(), rows.rend(), std::size_t{0});
  int needed = 0;
  for (const StorageClass at : classes) needed += width_of(at, metrics);
  if (needed <= width || memory.empty()) return rows;
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return memory.bytes[a][memory.peak_at] > memory.bytes[b][memory.peak_at];
  });
  int left = width - metrics.horizontalAdvance(QStringLiteral("…"));
  std::size_t count = 0;
  while (count < rows.size() && left >= width_of(classes[rows[count]], metrics)) {
    left -= width_of(classes[rows[count++]], metrics);
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
    const StorageClass at = memory.classes[row];
    const QRect swatch(x, space.top(), side, side);
    painter.fillRect(swatch, theme.storage(at));
    if (theme.hatched(at)) {
      painter.fillRect(swatch,
                       QBrush(mix(theme.storage(at), theme.background, 0.6), Qt::BDiagPattern));
    }
    painter.setPen(theme.frame);
    painter.drawRect(swatch.adjusted(0, 0, -1, -1));
    painter.setPen(ink);
    painter.drawText(x + side + 4, space.top() + metrics.ascent() - 1, word_for(at));
    x += width_of(at, metrics);
  }
  if (rows.size() < memory.classes.size()) {
    painter.setPen(ink);
    painter.drawText(x, space.top() + metrics.ascent() - 1, QStringLiteral("…"));
  }
}

}  // namespace stowage::gui
