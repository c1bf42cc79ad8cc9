#include "gui/widgets/pareto_plot.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/model/axis_ticks.h"
#include "gui/widgets/keys.h"
#include "gui/widgets/words.h"

namespace stowage::gui {
namespace {

using Mark = ParetoPlot::Mark;

// Shapes differ, so that kinds are told apart without colour.
void paint_shape(QPainter& painter, const QPointF& at, double r, Mark::Kind kind) {
  switch (kind) {
    case Mark::Kind::planned:
      painter.drawEllipse(at, r, r);
      return;
    case Mark::Kind::policy:
      painter.drawPolygon(QPolygonF({at - QPointF(0, 1.3 * r), at + QPointF(1.3 * r, 0),
                                     at + QPointF(0, 1.3 * r), at - QPointF(1.3 * r, 0)}));
      return;
    case Mark::Kind::resident:
      painter.drawRect(QRectF(at - QPointF(r, r), QSizeF(2 * r, 2 * r)));
      return;
    case Mark::Kind::current:
      painter.drawLine(at - QPointF(1.8 * r, 0), at + QPointF(1.8 * r, 0));
      painter.drawLine(at - QPointF(0, 1.8 * r), at + QPointF(0, 1.8 * r));
      painter.setBrush(Qt::NoBrush);
      painter.drawEllipse(at, 1.4 * r, 1.4 * r);
      return;
  }
}

QString bound_text() {
  return QObject::tr("hatched: no plan can be here (lower bound)");
}

}  // namespace

ParetoPlot::ParetoPlot(QWidget* parent) : QWidget(parent), theme_(Theme::of(palette())) {
  setObjectName(QStringLiteral("pareto_plot"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Plans: memory against step time"));
  setAccessibleDescription(tr("Left and Right go from plan to plan, Return loads it"));
}

void ParetoPlot::show_content(Content content) {
  const auto same = [&](const Mark& mark) {
    const Mark& old = content_.marks[static_cast<std::size_t>(chosen_)];
    return mark.kind == old.kind && mark.peak == old.peak && mark.step == old.step &&
           mark.label == old.label;
  };
  int chosen = -1;
  if (chosen_ >= 0) {
    const auto at = std::find_if(content.marks.begin(), content.marks.end(), same);
    if (at != content.marks.end()) chosen = static_cast<int>(at - content.marks.begin());
  }
  content_ = std::move(content);
  chosen_ = chosen;
  hovered_ = -1;
  update();
}

void ParetoPlot::choose(int mark) {
  if (mark == chosen_ || mark >= static_cast<int>(content_.marks.size())) return;
  chosen_ = mark;
  if (mark >= 0) {
    QString text = content_.marks[static_cast<std::size_t>(mark)].figures;
    setAccessibleDescription(text.replace(QLatin1Char('\n'), QStringLiteral(", ")));
  }
  update();
  Q_EMIT chosen_changed(mark);
}

QSize ParetoPlot::minimumSizeHint() const {
  const int em = fontMetrics().height();
  return {18 * em, 10 * em};
}

QSize ParetoPlot::sizeHint() const {
  const int em = fontMetrics().height();
  return {32 * em, 20 * em};
}

ScatterScale ParetoPlot::scale() const {
  ScatterScale scale;
  const int em = fontMetrics().height();
  const int left = fontMetrics().horizontalAdvance(QStringLiteral("1,000.00 ms")) + em;
  scale.plot = QRectF(rect()).adjusted(left, 1.8 * em, -1.5 * em, -3.2 * em);
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
  for (const Mark& mark : content_.marks) {
    add(static_cast<double>(mark.peak), static_cast<double>(mark.step));
  }
  for (const BoundPoint& bound : content_.bounds) {
    add(static_cast<double>(bound.budget), static_cast<double>(bound.step));
  }
  // A policy that takes many times as long would press all others together.
  if (content_.resident_step > 0) {
    double best = 0;
    for (const Mark& mark : content_.marks) {
      if (mark.kind != Mark::Kind::policy) best = std::max(best, static_cast<double>(mark.step));
    }
    high_y = std::min(high_y, std::max(best, 1.35 * static_cast<double>(content_.resident_step)));
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

QPointF ParetoPlot::position(int mark) const {
  const Mark& at = content_.marks[static_cast<std::size_t>(mark)];
  return scale().at(at.peak, at.step);
}

int ParetoPlot::mark_at(const QPointF& where) const {
  const ScatterScale now = scale();
  std::vector<QPointF> points;
  for (const Mark& mark : content_.marks) points.push_back(now.at(mark.peak, mark.step));
  const int found = ScatterScale::nearest(points, where, 0.9 * fontMetrics().height());
  if (found < 0 || content_.marks[static_cast<std::size_t>(found)].point >= 0) return found;
  // One that can be loaded lies over one that cannot.
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (content_.marks[i].point >= 0 && points[i] == points[static_cast<std::size_t>(found)]) {
      return static_cast<int>(i);
    }
  }
  return found;
}

void ParetoPlot::paint_axes(QPainter& painter, const ScatterScale& s) const {
  const QFontMetrics metrics = fontMetrics();
  const int em = metrics.height();
  const int wide = metrics.horizontalAdvance(QStringLiteral("1,000.0 GB")) + em;
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
  painter.drawText(QRectF(0.4 * em, 0.2 * em, width(), 1.4 * em), Qt::AlignLeft | Qt::AlignVCenter,
                   tr("step time (predicted)"));
  if (content_.budget) {
    const double x = s.at(*content_.budget, 0).x();
    if (x >= s.plot.left() && x <= s.plot.right()) {
      painter.setPen(QPen(theme_.budget, 1.5, Qt::DashLine));
      painter.drawLine(QPointF(x, s.plot.top()), QPointF(x, s.plot.bottom()));
      painter.drawText(QRectF(x - 10 * em, s.plot.top() - 1.3 * em, 20 * em, 1.3 * em),
                       Qt::AlignCenter, tr("budget %1").arg(bytes_text(*content_.budget)));
    }
  }
}

// At the left of the area, where the bound is highest.
QRectF ParetoPlot::bound_label(const ScatterScale& s) const {
  const int em = fontMetrics().height();
  const int wide = fontMetrics().horizontalAdvance(bound_text()) + em / 2;
  return {s.plot.left() + 0.3 * em, s.plot.bottom() - 1.5 * em, static_cast<double>(wide),
          1.2 * em};
}

void ParetoPlot::paint_bound(QPainter& painter, const ScatterScale& s) const {
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
  const QRectF box = bound_label(s);
  painter.fillRect(box, theme_.background);
  painter.setPen(theme_.faint);
  painter.drawText(box, Qt::AlignCenter, bound_text());
}

void ParetoPlot::paint_front(QPainter& painter, const ScatterScale& s) const {
  QPainterPath front;
  bool first = true;
  for (const Mark& mark : content_.marks) {
    if (mark.kind == Mark::Kind::current || !mark.best) continue;
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

void ParetoPlot::paint_marks(QPainter& painter, const ScatterScale& s) const {
  const double r = 0.28 * fontMetrics().height();
  for (std::size_t i = 0; i < content_.marks.size(); ++i) {
    const Mark& mark = content_.marks[i];
    const QPointF at = s.at(mark.peak, mark.step);
    const QColor color = mark.kind == Mark::Kind::current  ? theme_.text
                         : mark.kind == Mark::Kind::policy ? theme_.lane(LaneKind::d2h)
                                                           : theme_.source(Source::predicted);
    painter.setPen(QPen(mark.kind == Mark::Kind::current ? theme_.text : theme_.background,
                        mark.kind == Mark::Kind::current ? 2 : 1));
    painter.setBrush(mark.best || mark.kind == Mark::Kind::policy ? QBrush(color)
                                                                  : QBrush(theme_.background));
    if (!mark.best && mark.kind != Mark::Kind::current) painter.setPen(QPen(color, 1.5));
    paint_shape(painter, at, r, mark.kind);
    const bool is_chosen = static_cast<int>(i) == chosen_;
    if (is_chosen || static_cast<int>(i) == hovered_) {
      painter.setBrush(Qt::NoBrush);
      painter.setPen(QPen(is_chosen ? theme_.selection : theme_.faint, is_chosen ? 2.5 : 1.5));
      painter.drawEllipse(at, 2.2 * r, 2.2 * r);
    }
  }
}

void ParetoPlot::paint_labels(QPainter& painter, const ScatterScale& s) const {
  const QFontMetrics metrics = fontMetrics();
  const double gap = 0.7 * metrics.height();
  std::vector<QRectF> taken{bound_label(s)};
  for (const Mark& mark : content_.marks) {
    const QPointF at = s.at(mark.peak, mark.step);
    taken.emplace_back(at - QPointF(gap / 2, gap / 2), QSizeF(gap, gap));
  }
  for (const Mark& mark : content_.marks) {
    if (mark.label.isEmpty()) continue;
    const QString text =
        s.is_cut(mark.step) ? tr("%1 ▲ %2").arg(mark.label, time_text(mark.step)) : mark.label;
    const QSizeF size(metrics.horizontalAdvance(text), metrics.height());
    const QPointF at = s.at(mark.peak, mark.step);
    std::vector<QPointF> places = {at + QPointF(gap, -size.height() / 2),
                                   at + QPointF(-gap - size.width(), -size.height() / 2),
                                   at + QPointF(-size.width() / 2, -gap - size.height()),
                                   at + QPointF(-size.width() / 2, gap)};
    // Then further away, a line at a time.
    for (int line = 0; line < 4; ++line) {
      const double away = gap / 2 + line * size.height();
      for (const double y : {away, -away - size.height()}) {
        places.push_back(at + QPointF(gap, y));
        places.push_back(at + QPointF(-gap - size.width(), y));
      }
    }
    for (const QPointF& place : places) {
      const QRectF box(place, size);
      const bool free = std::none_of(taken.begin(), taken.end(),
                                     [&](const QRectF& other) { return other.intersects(box); });
      if (!free || !s.plot.contains(box)) continue;
      taken.push_back(box);
      painter.setPen(theme_.text);
      painter.drawText(box, Qt::AlignCenter, text);
      break;  // one for which there is no room is in the tool tip alone
    }
  }
}

void ParetoPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), theme_.background);
  const ScatterScale now = scale();
  paint_axes(painter, now);
  paint_bound(painter, now);
  paint_front(painter, now);
  paint_marks(painter, now);
  paint_labels(painter, now);
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.selection, 1));
    painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  }
}

bool ParetoPlot::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const int mark = mark_at(help->pos());
    if (mark < 0) {
      QToolTip::hideText();
      event->ignore();
    } else {
      QToolTip::showText(help->globalPos(), content_.marks[static_cast<std::size_t>(mark)].figures,
                         this);
    }
    return true;
  }
  return QWidget::event(event);
}

void ParetoPlot::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) {
    theme_ = Theme::of(palette());
    update();
  }
  QWidget::changeEvent(event);
}

void ParetoPlot::keyPressEvent(QKeyEvent* event) {
  const int last = static_cast<int>(content_.marks.size()) - 1;
  const std::optional<Key> key = key_of(*event, KeyPlace::pareto);
  if (last < 0 || !key) return QWidget::keyPressEvent(event);
  switch (*key) {
    case Key::next_point:
      return choose(std::min(chosen_ + 1, last));
    case Key::previous_point:
      return choose(chosen_ < 0 ? last : std::max(chosen_ - 1, 0));
    case Key::first_point:
      return choose(0);
    case Key::last_point:
      return choose(last);
    case Key::load_point: {
      if (chosen_ < 0) break;
      const int point = content_.marks[static_cast<std::size_t>(chosen_)].point;
      if (point >= 0) Q_EMIT load_requested(point);
      return;
    }
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

void ParetoPlot::leaveEvent(QEvent* event) {
  hovered_ = -1;
  update();
  QWidget::leaveEvent(event);
}

void ParetoPlot::mouseMoveEvent(QMouseEvent* event) {
  const int mark = mark_at(event->position());
  if (mark == hovered_) return;
  hovered_ = mark;
  setCursor(mark >= 0 && content_.marks[static_cast<std::size_t>(mark)].point >= 0
                ? Qt::PointingHandCursor
                : Qt::ArrowCursor);
  update();
}

void ParetoPlot::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  const int mark = mark_at(event->position());
  if (mark < 0) return;
  choose(mark);
  const int point = content_.marks[static_cast<std::size_t>(mark)].point;
  if (point >= 0) Q_EMIT load_requested(point);
}

}  // namespace stowage::gui
