// The memory curve, stacked by band, as pixels: in every column the stack at the moment with the
// most bytes, so that the peak is there at every zoom. Pure: no widget, tested by its pixels.
#pragma once

#include <QImage>
#include <QPoint>
#include <cstdint>
#include <vector>

#include "gui/model/step_picture.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

// Maps bytes to pixel rows: 0 is below the last row, `top` at row 0.
struct ByteAxis {
  Bytes top = 1;
  int height = 1;

  // Rows that are filled for so many bytes: at least one for any, all for `top`.
  [[nodiscard]] int rows(Bytes bytes) const;
  [[nodiscard]] int y_of(Bytes bytes) const { return height - rows(bytes); }
  [[nodiscard]] Bytes bytes_at(int y) const;
};

// The bytes' range of a view: a little above the peak and the budget.
[[nodiscard]] Bytes top_of(Bytes peak, Bytes budget);

// For each column of the axis the point with the most bytes that is seen in it; -1 = none.
// O(width log points).
[[nodiscard]] std::vector<std::int64_t> column_peaks(const MemoryView& memory,
                                                     const TimeAxis& axis);

// The upper edge of the curve.
enum class Outline : std::uint8_t { none, dotted, firm };
struct CurveInk {
  const Theme& theme;  // of the classes
  Outline outline = Outline::none;
  QRgb paper = 0;  // above the curve
  QRgb grid = 0;
  std::vector<int> grid_rows;  // lines above the curve, rows of the axis
};

// Paints `axis.width()` by `bytes.height` pixels of the canvas, `at` their upper left; what is
// beyond the canvas (32 bits a pixel) is left out. Each pixel is written once, and few are thought
// about: a hatched column is that of seven rows above, so rows are copied, and only where a band
// begins they are changed. O(pixels + width (log points + bands)).
void paint_memory(const MemoryView& memory, const TimeAxis& axis, const ByteAxis& bytes,
                  const CurveInk& ink, QImage& canvas, const QPoint& at);

}  // namespace stowage::gui
