#include "gui/widgets/pareto_painter.h"

#include <QObject>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/model/axis_ticks.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

// Shapes differ, so that kinds are told apart without colour.
void paint_shape(QPainter& painter, const QPointF& at, double r, ParetoMark::Kind kind) {
  switch (kind) {
    case ParetoMark::Kind::planned:
      painter.drawEllipse(at, r, r);
      return;
    case ParetoMark::Kind::policy:
      painter.drawPolygon(QPolygonF({at - QPointF(0, 1.3 * r), at + QPointF(1.3 * r, 0),
                                     at + QPointF(0, 1.3 * r), at - QPointF(1.3 * r, 0)}));
      return;
    case ParetoMark::Kind::resident:
      painter.drawRect(QRectF(at - QPointF(r, r), QSizeF(2 * r, 2 * r)));
      return;
    case ParetoMark::Kind::hand:
      painter.drawLine(at - QPointF(1.2 * r, 1.2 * r), at + QPointF(1.2 * r, 1.2 * r));
      painter.drawLine(at - QPointF(1.2 * r, -1.2 * r), at + QPointF(1.2 * r, -1.2 * r));
      return;
    case ParetoMark::Kind::current:
      painter.drawLine(at - QPointF(1.8 * r, 0), at + QPointF(1.8 * r, 0));
      painter.drawLine(at - QPointF(0, 1.8 * r), at + QPointF(0, 1.8 * r));
      painter.setBrush(Qt::NoBrush);
      painter.drawEllipse(at, 1.4 * r, 1.4 * r);
      return;
  }
}

// Lines, and no part of the front.
bool is_of_no_search(const ParetoMark& mark) {
  return mark.kind == ParetoMark::Kind::current || mark.kind == ParetoMark::Kind::hand;
}

QString bound_text() {
  return QObject::tr("hatched: no plan can be here (lower bound)");
}

}  // namespace

ParetoPainter::ParetoPainter(const ParetoContent& content, const QRectF& area, const QFont& font,
                             const Theme& theme)
    : content_(content), area_(area), metrics_(font), theme_(theme), scale_(scale_for(area)) {}

QPointF ParetoPainter::position(const ParetoMark& mark) const {
  return scale_.at(mark.peak, mark.step);
}

ScatterScale ParetoPainter::scale_for(const QRectF& area) const {
  ScatterScale scale;
  const int em = metrics_.height();
  const int left = metrics_.horizontalAdvance(QStringLiteral("1,000.00 ms")) + em;
  scale.plot = area.adjusted(left, 1.8 * em, -1.5 * em, -4.6 * em);
  double low_x = 0;
  double high_x = 0;
  double low_y = 0;
  double high_y = 0;
  bool first = true;
  const auto add = [&](double x, double y) {
    low_x = first ? x : std::min(low_x, x);
    high_x = first ? x : std::max(high_x, x);
    low_y = first ? y : std::min(low_y, y);
    high_y = first ? y : std::max(high_y, y);
    first = false;
  };
  for (const ParetoMark& mark : content_.marks) {
    add(static_cast<double>(mark.peak), static_cast<double>(mark.step));
  }
  for (const BoundPoint& bound : content_.bounds) {
    add(static_cast<double>(bound.budget), static_cast<double>(bound.step));
  }
  // A policy, a plan made by hand, or the one that is shown, that takes many times as long would
  // press what is found together.
  if (content_.resident_step > 0) {
    constexpr double kLittle = 0.1;  // of the resident step
    constexpr double kPart = 0.5;    // of the range of what is found
    double found = static_cast<double>(content_.resident_step);
    for (const ParetoMark& mark : content_.marks) {
      const bool is_found =
          mark.kind == ParetoMark::Kind::planned || mark.kind == ParetoMark::Kind::resident;
      if (is_found) found = std::max(found, static_cast<double>(mark.step));
    }
    const double above =
        std::max(kPart * (found - low_y), kLittle * static_cast<double>(content_.resident_step));
    high_y = std::min(high_y, found + above);
  }
  if (content_.floor > 0) low_x = std::min(low_x, static_cast<double>(content_.floor));
  const ScatterRange x = padded(low_x, high_x);
  ScatterRange y = padded(low_y, high_y);
  // Room for what the area below the bound says.
  y.low = std::max(0.0, y.low - 2.2 * em / std::max(scale.plot.height(), 1.0) * (y.high - y.low));
  scale.low_x = x.low;
  scale.high_x = x.high;
  scale.low_y = y.low;
  scale.high_y = y.high;
  return scale;
}

void ParetoPainter::paint_axes(QPainter& painter) const {
  const ScatterScale& s = scale_;
  const int em = metrics_.height();
  const int wide = metrics_.horizontalAdvance(QStringLiteral("1,000.0 GB")) + em;
  for (const AxisTick& tick :
       byte_ticks(s.low_x, s.high_x, std::max(2, static_cast<int>(s.plot.width()) / wide))) {
    const double x = s.plot.left() + (tick.value - s.low_x) / (s.high_x - s.low_x) * s.plot.width();
    painter.setPen(theme_.grid);
    painter.drawLine(QPointF(x, s.plot.top()), QPointF(x, s.plot.bottom()));
    painter.setPen(theme_.text);
    painter.drawText(QRectF(x - wide, s.plot.bottom() + 2, 2 * wide, em), Qt::AlignCenter,
                     QString::fromStdString(tick.label));
  }
  for (const AxisTick& tick :
       time_ticks(s.low_y, s.high_y, std::max(2, static_cast<int>(s.plot.height()) / (2 * em)))) {
    const double y =
        s.plot.bottom() - (tick.value - s.low_y) / (s.high_y - s.low_y) * s.plot.height();
    painter.setPen(theme_.grid);
    painter.drawLine(QPointF(s.plot.left(), y), QPointF(s.plot.right(), y));
    painter.setPen(theme_.text);
    painter.drawText(QRectF(0, y - em, s.plot.left() - 0.4 * em, 2 * em),
                     Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(tick.label));
  }
  painter.setPen(theme_.frame);
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(s.plot);
  painter.setPen(theme_.text);
  painter.drawText(QRectF(s.plot.left(), s.plot.bottom() + 1.3 * em, s.plot.width(), 1.5 * em),
                   Qt::AlignCenter, content_.memory_title);
  painter.drawText(QRectF(0.4 * em, 0.2 * em, area_.width(), 1.4 * em),
                   Qt::AlignLeft | Qt::AlignVCenter, QObject::tr("step time (predicted)"));
  if (content_.budget) {
    const double x = s.at(*content_.budget, 0).x();
    if (x >= s.plot.left() && x <= s.plot.right()) {
      painter.setPen(QPen(theme_.budget, 1.5, Qt::DashLine));
      painter.drawLine(QPointF(x, s.plot.top()), QPointF(x, s.plot.bottom()));
      painter.drawText(QRectF(x - 10 * em, s.plot.top() - 1.3 * em, 20 * em, 1.3 * em),
                       Qt::AlignCenter, QObject::tr("budget %1").arg(bytes_text(*content_.budget)));
    }
  }
}

// At the left of the area, where the bound is highest.
QRectF ParetoPainter::bound_label() const {
  const ScatterScale& s = scale_;
  const int em = metrics_.height();
  const int wide = metrics_.horizontalAdvance(bound_text()) + em / 2;
  return {s.plot.left() + 0.3 * em, s.plot.bottom() - 1.5 * em, static_cast<double>(wide),
          1.2 * em};
}

void ParetoPainter::paint_bound(QPainter& painter) const {
  const ScatterScale& s = scale_;
  if (content_.bounds.size() < 2) return;
  // No plan with less memory than the first budget's floor, none faster than the line. Between two
  // budgets the bound of the larger one holds.
  QPainterPath line;
  const auto& bounds = content_.bounds;
  line.moveTo(s.at(bounds.front().budget, bounds.front().step));
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    line.lineTo(s.at(bounds[i - 1].budget, bounds[i].step));
    line.lineTo(s.at(bounds[i].budget, bounds[i].step));
  }
  line.lineTo(QPointF(s.plot.right(), line.currentPosition().y()));
  QPainterPath area = line;
  area.lineTo(s.plot.bottomRight());
  area.lineTo(s.plot.bottomLeft());
  area.lineTo(s.plot.topLeft());
  area.lineTo(QPointF(s.at(bounds.front().budget, 0).x(), s.plot.top()));
  area.closeSubpath();
  painter.save();
  painter.setClipRect(s.plot);
  painter.setPen(Qt::NoPen);
  painter.setBrush(QBrush(theme_.grid, Qt::BDiagPattern));
  painter.drawPath(area);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme_.faint, 1.5));
  painter.drawPath(line);
  painter.restore();
  const QRectF box = bound_label();
  painter.fillRect(box, theme_.background);
  painter.setPen(theme_.faint);
  painter.drawText(box, Qt::AlignCenter, bound_text());
}

void ParetoPainter::paint_front(QPainter& painter) const {
  const ScatterScale& s = scale_;
  QPainterPath front;
  bool first = true;
  for (const ParetoMark& mark : content_.marks) {
    if (is_of_no_search(mark) || !mark.best) continue;
    const QPointF at = s.at(mark.peak, mark.step);
    if (first) {
      front.moveTo(at);
    } else {
      // The plan with less memory is the one to take until the next one fits.
      front.lineTo(QPointF(at.x(), front.currentPosition().y()));
      front.lineTo(at);
    }
    first = false;
  }
  painter.setPen(QPen(theme_.source(Source::predicted), 1.5));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(front);
}

void ParetoPainter::paint_marks(QPainter& painter, int chosen, int hovered) const {
  const ScatterScale& s = scale_;
  const double r = 0.28 * metrics_.height();
  for (std::size_t i = 0; i < content_.marks.size(); ++i) {
    const ParetoMark& mark = content_.marks[i];
    const QPointF at = s.at(mark.peak, mark.step);
    const bool is_lines = is_of_no_search(mark);
    const QColor color = is_lines                                ? theme_.text
                         : mark.kind == ParetoMark::Kind::policy ? theme_.lane(LaneKind::d2h)
                                                                 : theme_.source(Source::predicted);
    painter.setPen(QPen(is_lines ? theme_.text : theme_.background, is_lines ? 2 : 1));
    painter.setBrush(mark.best || mark.kind == ParetoMark::Kind::policy
                         ? QBrush(color)
                         : QBrush(theme_.background));
    if (!mark.best && !is_lines) painter.setPen(QPen(color, 1.5));
    paint_shape(painter, at, r, mark.kind);
    const bool is_chosen = static_cast<int>(i) == chosen;
    if (is_chosen || static_cast<int>(i) == hovered) {
      painter.setBrush(Qt::NoBrush);
      painter.setPen(QPen(is_chosen ? theme_.selection : theme_.faint, is_chosen ? 2.5 : 1.5));
      painter.drawEllipse(at, 2.2 * r, 2.2 * r);
    }
  }
}

void ParetoPainter::paint(QPainter& painter, int chosen, int hovered) const {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(area_, theme_.background);
  paint_axes(painter);
  paint_bound(painter);
  paint_front(painter);
  paint_marks(painter, chosen, hovered);
  paint_labels(painter);
}

}  // namespace stowage::gui
