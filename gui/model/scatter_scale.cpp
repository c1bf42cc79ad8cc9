#include "gui/model/scatter_scale.h"

#include <QLineF>
#include <algorithm>
#include <cmath>

namespace stowage::gui {

QPointF ScatterScale::at(Bytes bytes, Nanoseconds time) const {
  const double y = std::min(static_cast<double>(time), high_y);
  return {plot.left() + (static_cast<double>(bytes) - low_x) / (high_x - low_x) * plot.width(),
          plot.bottom() - (y - low_y) / (high_y - low_y) * plot.height()};
}

int ScatterScale::nearest(const std::vector<QPointF>& points, const QPointF& where, double reach) {
  int found = -1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double distance = QLineF(points[i], where).length();
    if (distance > reach) continue;
    reach = distance;
    found = static_cast<int>(i);
  }
  return found;
}

ScatterRange padded(double low, double high) {
  const double margin = high > low ? (high - low) * 0.06 : std::max(std::abs(low) * 0.1, 1.0);
  return {std::max(low - margin, 0.0), high + margin};
}

}  // namespace stowage::gui
