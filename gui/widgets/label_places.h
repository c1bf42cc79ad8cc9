// Where labels stand in a plot, so that none lies on a line or on another label.
#pragma once

#include <QList>
#include <QPoint>
#include <QRect>
#include <QSize>
#include <vector>

namespace stowage::gui {

class LabelPlaces {
 public:
  explicit LabelPlaces(const QRect& area) : area_(area) {}

  // Nothing is put here from now on.
  void take(const QRect& box) { taken_.push_back(box); }

  // A label of this size whose left end is at one of `lefts`, the earlier the better, as near to
  // `top` as there is room, above it rather than below. It is taken then. Inside of the area, but
  // for a label that is larger than that; where all of the area is taken, at the first place.
  // O(height of the area * lefts * taken).
  QRect put(const QSize& size, const QList<int>& lefts, int top);

 private:
  [[nodiscard]] bool is_free(const QRect& box) const;

  QRect area_;
  std::vector<QRect> taken_;
};

}  // namespace stowage::gui
