// The memory curve, stacked by class, as an image: in every pixel column the stack at the moment
// with the most bytes, so that the peak is there at every zoom. Pure: no widget, tested by its
// pixels.
#pragma once

#include <QImage>
#include <vector>

#include "gui/model/step_view.h"
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
  // Round steps of bytes (1, 2, 5 times a power of ten), at most `most`.
  [[nodiscard]] std::vector<Bytes> ticks(int most) const;
};

// The bytes' range of a view: a little above the peak and the budget.
[[nodiscard]] Bytes top_of(Bytes peak, Bytes budget);

// For each column of the axis the point with the most bytes that is seen in it; -1 = none.
// O(width log points).
[[nodiscard]] std::vector<std::int64_t> column_peaks(const MemoryView& memory,
                                                     const TimeAxis& axis);

// `axis.width()` by `bytes.height` pixels, transparent above the curve. O(pixels).
[[nodiscard]] QImage memory_image(const MemoryView& memory, const TimeAxis& axis,
                                  const ByteAxis& bytes, const Theme& theme);

}  // namespace stowage::gui
