// Where a point of memory and time is on a plot: plain geometry, tested without a window.
#pragma once

#include <QPointF>
#include <QRectF>
#include <vector>

#include "traces/units.h"

namespace stowage::gui {

struct ScatterScale {
  QRectF plot;
  double low_x = 0;  // bytes at the plot's left
  double high_x = 1;
  double low_y = 0;  // nanoseconds at its bottom
  double high_y = 1;

  // What lies above high_y is put onto the upper edge.
  [[nodiscard]] QPointF at(Bytes bytes, Nanoseconds time) const;
  [[nodiscard]] bool is_cut(Nanoseconds time) const { return static_cast<double>(time) > high_y; }
  // The nearest of `points` (in pixels) within `reach` pixels of `where`, -1 = none.
  [[nodiscard]] static int nearest(const std::vector<QPointF>& points, const QPointF& where,
                                   double reach);
};

// All of [low, high] and a margin of 6 % of it; of one value, 10 % of that value.
struct ScatterRange {
  double low = 0;
  double high = 1;
};
[[nodiscard]] ScatterRange padded(double low, double high);

}  // namespace stowage::gui
