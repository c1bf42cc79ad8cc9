#include "gui/widgets/curve_pair.h"

#include <QEvent>
#include <QPainter>
#include <algorithm>

#include "gui/model/axis_ticks.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {

CurvePair::CurvePair(QWidget* parent) : QWidget(parent), theme_(Theme::of(palette())) {
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

void CurvePair::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
  if (empty()) return;
  const QFontMetrics metrics = fontMetrics();
  const int em = metrics.height();
  const int left = metrics.horizontalAdvance(QStringLiteral("1,000 MB")) + em;
  const QRectF plot = QRectF(rect()).adjusted(left, 1.8 * em, -1.5 * em, -1.8 * em);
  if (plot.width() < 4 || plot.height() < 4) return;
  double end = 1;
  double top = 1;
  for (const StepPicturePtr& view : {before_, after_}) {
    if (!view) continue;
    end = std::max(end, static_cast<double>(view->end));
    top = std::max(top, 1.05 * static_cast<double>(view->memory.peak()));
  }
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
  double x = plot.left();
  for (const auto& [view, pen, name] :
       {std::tuple(before_, dashed, before_name_), std::tuple(after_, solid, after_name_)}) {
    if (!view) continue;
    painter.setPen(pen);
    painter.drawLine(QPointF(x, 0.9 * em), QPointF(x + 2 * em, 0.9 * em));
    const QString text = tr("%1, peak %2").arg(name, bytes_text(view->memory.peak()));
    painter.setPen(theme_.text);
    painter.drawText(QPointF(x + 2.4 * em, 0.9 * em + 0.35 * em), text);
    x += 3.6 * em + metrics.horizontalAdvance(text);
  }
}

}  // namespace stowage::gui
