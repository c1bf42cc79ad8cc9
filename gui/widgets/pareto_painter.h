// How memory against time is drawn: scales, the area that no plan reaches, the front, marks of
// several shapes with their names, and what they mean. Knows no widget; made for one painting.
#pragma once

#include <QFont>
#include <QFontMetrics>
#include <QPainter>
#include <QRectF>
#include <QString>
#include <optional>
#include <vector>

#include "gui/model/pareto_search.h"
#include "gui/model/scatter_scale.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

struct ParetoMark {
  enum class Kind : std::uint8_t { planned, policy, resident, hand, current };
  Kind kind = Kind::planned;
  Bytes peak = 0;
  Nanoseconds step = 0;
  QString label;    // beside it; may be empty
  QString figures;  // of the tool tip, lines
  int point = -1;   // what is loaded, by whoever made the marks; -1 = nothing
  bool best = true;
};
struct ParetoContent {
  std::vector<ParetoMark> marks;  // in order of peaks
  std::vector<BoundPoint> bounds;
  Bytes floor = 0;
  std::optional<Bytes> budget;
  Nanoseconds resident_step = 0;
  QString memory_title;  // "peak active memory"
};

class ParetoPainter {
 public:
  // What is painted into `area`. All but the theme's and the metrics' copies must outlive it.
  ParetoPainter(const ParetoContent& content, const QRectF& area, const QFont& font,
                const Theme& theme);

  [[nodiscard]] const ScatterScale& scale() const { return scale_; }
  [[nodiscard]] QPointF position(const ParetoMark& mark) const;

  // Names beside the marks. Marks at one place share a label with a line for each, so that none
  // hides another; one above the scale says its step time behind kCut. A label for which there is
  // no room is left out (tool tips have it).
  struct Label {
    QString text;
    QRectF box;
  };
  [[nodiscard]] std::vector<Label> labels() const;
  // Rows of content.marks at the same place as this one, it included, in order.
  [[nodiscard]] std::vector<int> at_place_of(int mark) const;
  // What shapes and signs mean, left to right; of those that are there.
  [[nodiscard]] QString legend() const;

  // `chosen`, `hovered`: rows of content.marks, -1 = none. O(marks^2) for the labels.
  void paint(QPainter& painter, int chosen, int hovered) const;

  static constexpr char16_t kCut = u'\u21C8';  // two arrows up: no triangle, which says "more"

 private:
  [[nodiscard]] ScatterScale scale_for(const QRectF& area) const;
  [[nodiscard]] QRectF bound_label() const;
  void paint_axes(QPainter& painter) const;
  void paint_bound(QPainter& painter) const;
  void paint_front(QPainter& painter) const;
  void paint_marks(QPainter& painter, int chosen, int hovered) const;
  void paint_labels(QPainter& painter) const;

  const ParetoContent& content_;
  const QRectF area_;
  const QFontMetrics metrics_;
  const Theme theme_;
  const ScatterScale scale_;
};

}  // namespace stowage::gui
