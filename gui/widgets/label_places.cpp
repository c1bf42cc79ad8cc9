#include "gui/widgets/label_places.h"

#include <algorithm>

namespace stowage::gui {

bool LabelPlaces::is_free(const QRect& box) const {
  return std::none_of(taken_.begin(), taken_.end(),
                      [&](const QRect& other) { return other.intersects(box); });
}

QRect LabelPlaces::put(const QSize& size, const QList<int>& lefts, int top) {
  const int lowest = std::max(area_.top(), area_.bottom() + 1 - size.height());
  const int rightmost = std::max(area_.left(), area_.right() + 1 - size.width());
  const auto at = [&](int left, int y) {
    return QRect({std::clamp(left, area_.left(), rightmost), y}, size);
  };
  const int wished = std::clamp(top, area_.top(), lowest);
  QRect found = at(lefts.isEmpty() ? area_.left() : lefts.first(), wished);
  const auto try_row = [&](int y) {
    if (y < area_.top() || y > lowest) return false;
    for (const int left : lefts) {
      if (!is_free(at(left, y))) continue;
      found = at(left, y);
      return true;
    }
    return false;
  };
  for (int off = 0; off <= area_.height(); ++off) {
    if (try_row(wished - off) || try_row(wished + off)) break;
  }
  taken_.push_back(found);
  return found;
}

}  // namespace stowage::gui
