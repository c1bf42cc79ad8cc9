#include "gui/widgets/curve_pair.h"

#include <QEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "gui/model/axis_ticks.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {

CurvePair::CurvePair(ViewState& state, QWidget* parent)
    : QWidget(parent), state_(state), theme_(Theme::of(palette())) {
  setMouseTracking(true);
  connect(&state_, &ViewState::cursor_changed, this, qOverload<>(&QWidget::update));
  setAccessibleName(tr("Memory of both steps over time"));
  setToolTip(
      tr("Requested bytes on the device over the time of the step: before dashed, after solid"));
}

void CurvePair::show_curves(StepPicturePtr before, const QString& before_name, StepPicturePtr after,
                            const QString& after_name) {
  before_ = before && !before->memory.empty() ? std::move(before) : nullptr;
  after_ = after && !after->memory.empty() ? std::move(after) : nullptr;
  before_name_ = before_name;
  after_name_ = after_name;
  QString text;
  for (const auto& [view, name] :
       {std::pair(before_, before_name_), std::pair(after_, after_name_)}) {
    if (!view) continue;
    text += tr("%1: peak %2, %3 long. ")
                .arg(name, bytes_text(view->memory.peak()), time_text(view->end));
  }
  setAccessibleDescription(text);
  update();
}

QSize CurvePair::minimumSizeHint() const {
  const int em = fontMetrics().height();
  return {18 * em, 8 * em};
}

QSize CurvePair::sizeHint() const {
  const int em = fontMetrics().height();
  return {36 * em, 12 * em};
}

QPolygonF CurvePair::outline(const StepPicture& view, const QRectF& plot, double end,
                             double top) const {
  QPolygonF line;
  const int columns = static_cast<int>(plot.width());
  for (int i = 0; i < columns; ++i) {
    const double begin_ns = end * i / columns;
    if (begin_ns > static_cast<double>(view.end)) break;
    const auto range = view.memory.points(begin_ns, end * (i + 1) / columns);
    const auto extent = view.memory.total.extent(range.first, range.last);
    const auto y = [&](Bytes bytes) {
      return plot.bottom() - static_cast<double>(bytes) / top * plot.height();
    };
    line << QPointF(plot.left() + i, y(extent.max));
    if (extent.min != extent.max) line << QPointF(plot.left() + i + 0.5, y(extent.min));
  }
  return line;
}

void CurvePair::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) theme_ = Theme::of(palette());
  QWidget::changeEvent(event);
}

CurvePair::Scale CurvePair::scale() const {
  Scale scale;
  const int em = fontMetrics().height();
  const int left = fontMetrics().horizontalAdvance(QStringLiteral("1,000 MB")) + em;
  scale.plot = QRectF(rect()).adjusted(left, 1.8 * em, -1.5 * em, -1.8 * em);
  if (empty() || scale.plot.width() < 4 || scale.plot.height() < 4) scale.plot = {};
  for (const StepPicturePtr& view : {before_, after_}) {
    if (!view) continue;
    scale.end = std::max(scale.end, static_cast<double>(view->end));
    scale.top = std::max(scale.top, 1.05 * static_cast<double>(view->memory.peak()));
  }
  return scale;
}

void CurvePair::mouseMoveEvent(QMouseEvent* event) {
  const auto [plot, end, top] = scale();
  if (plot.isEmpty() || !plot.contains(event->position())) return;
  const double at = (event->position().x() - plot.left()) / plot.width() * end;
  state_.set_cursor(static_cast<Nanoseconds>(at));
}

QString CurvePair::cursor_words() const {
  if (!state_.cursor() || empty()) return {};
  QStringList parts;
  for (const auto& [view, name] :
       {std::pair(before_, before_name_), std::pair(after_, after_name_)}) {
    if (!view || view->memory.empty() || *state_.cursor() > view->end) continue;
    const auto at = static_cast<double>(*state_.cursor());
    const MemoryView::Range points = view->memory.points(at, at + 1);
    const Bytes most = view->memory.total.extent(points.first, points.last).max;
    parts << tr("%1 %2").arg(name, bytes_text(most));
  }
  return tr("%1: %2").arg(time_text(*state_.cursor()), parts.join(QStringLiteral(", ")));
}

void CurvePair::paint_axes(QPainter& painter, const Scale& scale) const {
  const auto& [plot, end, top] = scale;
  const QFontMetrics metrics = fontMetrics();
  const int em = metrics.height();
  const int left = static_cast<int>(plot.left());
  for (const AxisTick& tick :
       byte_ticks(0, top, std::max(2, static_cast<int>(plot.height()) / (2 * em)))) {
    const double y = plot.bottom() - tick.value / top * plot.height();
    painter.setPen(theme_.grid);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(theme_.text);
    // The lowest one stands clear of the times.
    painter.drawText(QRectF(0, std::min(y, plot.bottom() - 0.6 * em) - em, left - 0.4 * em, 2 * em),
                     Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(tick.label));
  }
  const int wide = metrics.horizontalAdvance(QStringLiteral("1,000.0 ms")) + em;
  for (const AxisTick& tick :
       time_ticks(0, end, std::max(2, static_cast<int>(plot.width()) / wide))) {
    const double x = plot.left() + tick.value / end * plot.width();
    painter.setPen(theme_.grid);
    painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
    painter.setPen(theme_.text);
    painter.drawText(QRectF(x - wide, plot.bottom() + 2, 2 * wide, em), Qt::AlignCenter,
                     QString::fromStdString(tick.label));
  }
  painter.setPen(theme_.frame);
  painter.drawRect(plot);
}

void CurvePair::paint_cursor(QPainter& painter, const Scale& scale) const {
  const auto& [plot, end, top] = scale;
  if (!state_.cursor() || static_cast<double>(*state_.cursor()) > end) return;
  const double x = plot.left() + static_cast<double>(*state_.cursor()) / end * plot.width();
  painter.setPen(QPen(theme_.cursor, 1));
  painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
  const QString text = cursor_words();
  const double wide = fontMetrics().horizontalAdvance(text) + 6;
  const bool is_right = x + 4 + wide <= plot.right();
  const QRectF box(is_right ? x + 4 : std::max(plot.left(), x - 4 - wide),
                   plot.bottom() - 1.3 * fontMetrics().height(), wide,
                   1.2 * fontMetrics().height());
  painter.fillRect(box, theme_.background);
  painter.setPen(theme_.text);
  painter.drawText(box, Qt::AlignCenter, text);
}

void CurvePair::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
  const Scale scale = this->scale();
  const auto& [plot, end, top] = scale;
  if (plot.isEmpty()) return;
  const QFontMetrics metrics = fontMetrics();
  const int em = metrics.height();
  paint_axes(painter, scale);
  painter.setRenderHint(QPainter::Antialiasing);
  const QPen dashed(theme_.source(Source::assumed), 1.5, Qt::DashLine);
  const QPen solid(theme_.source(Source::predicted), 1.8);
  if (before_) {
    const QPolygonF line = outline(*before_, plot, end, top);
    QPolygonF area = line;
    if (!line.isEmpty()) {
      area << QPointF(line.last().x(), plot.bottom()) << plot.bottomLeft();
    }
    painter.setPen(Qt::NoPen);
    painter.setBrush(QBrush(theme_.grid, Qt::BDiagPattern));
    painter.drawPolygon(area);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(dashed);
    painter.drawPolyline(line);
  }
  if (after_) {
    painter.setPen(solid);
    painter.drawPolyline(outline(*after_, plot, end, top));
  }
  paint_cursor(painter, scale);
  // Without the peaks where there is no room; the description has them.
  double needed = 0;
  const auto legend = [&](const StepPicturePtr& view, const QString& name) {
    return tr("%1, peak %2").arg(name, bytes_text(view->memory.peak()));
  };
  for (const auto& [view, name] :
       {std::pair(before_, before_name_), std::pair(after_, after_name_)}) {
    if (view) needed += 3.6 * em + metrics.horizontalAdvance(legend(view, name));
  }
  const bool has_room = plot.left() + needed <= width();
  double x = plot.left();
  for (const auto& [view, pen, name] :
       {std::tuple(before_, dashed, before_name_), std::tuple(after_, solid, after_name_)}) {
    if (!view) continue;
    painter.setPen(pen);
    painter.drawLine(QPointF(x, 0.9 * em), QPointF(x + 2 * em, 0.9 * em));
    const QString text = has_room ? legend(view, name) : name;
    painter.setPen(theme_.text);
    painter.drawText(QPointF(x + 2.4 * em, 0.9 * em + 0.35 * em), text);
    x += 3.6 * em + metrics.horizontalAdvance(text);
  }
}

}  // namespace stowage::gui
