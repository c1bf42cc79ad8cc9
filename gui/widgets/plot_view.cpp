#include "gui/widgets/plot_view.h"

#include <QApplication>
#include <QContextMenuEvent>
#include <QFontMetrics>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/widgets/keys.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

constexpr double kZoomStep = 1.3;
constexpr double kPanShare = 0.1;  // of the width
constexpr double kWheelNotch = 120;

}  // namespace

PlotView::PlotView(ViewState& state, QWidget* parent)
    : QWidget(parent), state_(state), theme_(Theme::of(palette())) {
  measure_font();
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  connect(&state, &ViewState::axis_changed, this, &PlotView::invalidate_axis);
  connect(&state, &ViewState::selection_changed, this, &PlotView::invalidate_axis);
  connect(&state, &ViewState::cursor_changed, this, qOverload<>(&QWidget::update));
  connect(&state, &ViewState::range_changed, this, qOverload<>(&QWidget::update));
  connect(&state, &ViewState::centre_requested, this, &PlotView::centre);
}

void PlotView::show_step(TracePtr trace, StepPicturePtr view, StepRowsPtr rows) {
  // The string of an id is another one in another trace, and in another step of it.
  const bool has_other_names = trace != trace_ || rows != rows_;
  trace_ = std::move(trace);
  rows_ = std::move(rows);
  if (has_other_names) forget_names();
  view_ = std::move(view);
  invalidate();
}

void PlotView::set_lifetime(const std::optional<Lifetime>& lifetime) {
  if (lifetime_ == lifetime) return;
  lifetime_ = lifetime;
  invalidate_axis();
}

QRect PlotView::plot() const {
  return rect().adjusted(std::min(gutter_, width() - 1), 0, 0, 0);
}

void PlotView::measure_font() {
  gutter_ = QFontMetrics(font()).horizontalAdvance(QStringLiteral("Copy back (H2D)")) + 16;
}

TimeAxis PlotView::axis() const {
  TimeAxis axis = state_.axis();
  axis.set_width(plot().width());
  return axis;
}

Selection PlotView::selected() const {
  const bool recorded = view_ && view_->source == Source::measured;
  return recorded ? in_recording(rows_, state_.selection()) : state_.selection();
}

std::string PlotView::text_of(StringId name) const {
  if (!trace_ || !name.valid()) return {};
  // A step's strings are those of its recording, and more.
  return rows_ ? rows_->step().trace().string(name) : trace_->trace.string(name);
}

void PlotView::invalidate() {
  still_stale_ = true;
  invalidate_axis();
}

void PlotView::invalidate_axis() {
  stale_ = true;
  update();
}

void PlotView::overlay(QPainter&) {}

QString PlotView::why_empty() const {
  return tr(
      "Nothing is open. Drop a trace, a plan or a result here, press Ctrl+O, or open a sample "
      "from the Help menu.");
}

Nanoseconds PlotView::time_at(int x) const {
  const double time = axis().time_at(x - plot().left());
  return std::clamp(static_cast<Nanoseconds>(std::llround(time)), Nanoseconds{0},
                    state_.axis().length());
}

double PlotView::pointer_x() const {
  const QRect at = plot();
  return pointer_ && at.contains(*pointer_) ? pointer_->x() - at.left() : at.width() / 2.0;
}

void PlotView::zoom(double factor, double x) {
  TimeAxis axis = this->axis();
  axis.zoom(factor, x);
  state_.set_axis(axis);
}

void PlotView::pan(double pixels) {
  TimeAxis axis = this->axis();
  axis.pan(pixels);
  state_.set_axis(axis);
}

void PlotView::centre() {
  const std::optional<TimeRange> at = selected_time();
  if (!at) return;
  TimeAxis axis = this->axis();
  // Something that is no pixel wide comes closer, too.
  const auto duration = static_cast<double>(at->duration());
  if (duration > 0 && duration < axis.ns_per_pixel() * 4) {
    axis.zoom(axis.ns_per_pixel() * 40 / duration, 0);
  }
  axis.centre_on(static_cast<double>(at->begin) + duration / 2);
  state_.set_axis(axis);
}

bool PlotView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QString text = view_ ? describe(help->pos()) : QString();
  if (text.isEmpty()) {
    QToolTip::hideText();
    event->ignore();
  } else {
    QToolTip::showText(help->globalPos(), text, this);
  }
  return true;
}

void PlotView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange ||
      event->type() == QEvent::StyleChange) {
    theme_ = Theme::of(palette());
    measure_font();
    invalidate();
  }
  QWidget::changeEvent(event);
}

void PlotView::keyPressEvent(QKeyEvent* event) {
  const double page = plot().width() * kPanShare;
  const std::optional<Key> key = key_of(*event, KeyPlace::plot);
  if (!key) return QWidget::keyPressEvent(event);
  switch (*key) {
    case Key::closer:
      return zoom(kZoomStep, pointer_x());
    case Key::farther:
      return zoom(1 / kZoomStep, pointer_x());
    case Key::earlier:
      return pan(-page);
    case Key::later:
      return pan(page);
    case Key::whole_step: {
      TimeAxis axis = this->axis();
      axis.fit();
      return state_.set_axis(axis);
    }
    case Key::centre:
      return state_.centre_selection();
    case Key::peak:
      Q_EMIT peak_requested();
      return;
    case Key::clear:
      return state_.clear();
    default:
      QWidget::keyPressEvent(event);
  }
}

void PlotView::leaveEvent(QEvent*) {
  pointer_.reset();  // the cursor stays: what it shows is looked at next
}

void PlotView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !view_) return QWidget::mousePressEvent(event);
  pressed_at_ = event->pos();
  pointer_ = pressed_at_;
  if (plot().contains(pressed_at_)) state_.set_cursor(time_at(pressed_at_.x()));
  drag_ = begin_drag(pressed_at_) ? Drag::taken : Drag::pressed;
}

void PlotView::mouseMoveEvent(QMouseEvent* event) {
  pointer_ = event->pos();
  if (!view_) return;
  if (drag_ == Drag::taken) {
    drag(event->pos());
    return;
  }
  if (drag_ == Drag::pressed && plot().contains(pressed_at_) &&
      std::abs(event->pos().x() - pressed_at_.x()) >= QApplication::startDragDistance() / 2) {
    drag_ = Drag::measuring;
  }
  if (drag_ == Drag::measuring) {
    state_.set_range(TimeRange{time_at(pressed_at_.x()), time_at(event->pos().x())});
  }
  if (plot().contains(event->pos())) {
    state_.set_cursor(time_at(event->pos().x()));
  } else if (drag_ == Drag::none) {
    state_.set_cursor(std::nullopt);
  }
}

void PlotView::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mouseReleaseEvent(event);
  const Drag was = std::exchange(drag_, Drag::none);
  if (!view_) return;
  if (was == Drag::taken) end_drag(event->pos());
  if (was == Drag::measuring) Q_EMIT range_measured();
  if (was == Drag::pressed) select_at(event->pos());
}

// Behind a press and a release, which selected what is there.
void PlotView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !view_) return QWidget::mouseDoubleClickEvent(event);
  if (hit(event->pos()).kind == Selection::Kind::none) return mousePressEvent(event);
  const std::optional<TimeRange> at = selected_time();
  if (!at || at->duration() <= 0) return;
  constexpr double kAround = 0.05;  // of it, on either side
  const double around = static_cast<double>(at->duration()) * kAround;
  TimeAxis axis = this->axis();
  axis.show(static_cast<double>(at->begin) - around, static_cast<double>(at->end) + around);
  state_.set_axis(axis);
}

void PlotView::select_at(const QPoint& at) {
  const bool recorded = view_->source == Source::measured;
  state_.select(recorded ? in_step(rows_, hit(at)) : hit(at));
}

void PlotView::contextMenuEvent(QContextMenuEvent* event) {
  if (!view_) return;
  // The key is about what is selected already.
  const bool is_mouse = event->reason() == QContextMenuEvent::Mouse;
  if (is_mouse && plot().contains(event->pos())) {
    state_.set_cursor(time_at(event->x()));
    select_at(event->pos());
  }
  Q_EMIT menu_requested(event->globalPos());
  event->accept();
}

void PlotView::wheelEvent(QWheelEvent* event) {
  // Shift turns the wheel of some systems sideways.
  const int angle =
      event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
  if (event->modifiers().testFlag(Qt::ShiftModifier) || event->angleDelta().y() == 0) {
    pan(-angle / kWheelNotch * plot().width() * kPanShare);
  } else {
    zoom(std::pow(kZoomStep, angle / kWheelNotch), event->position().x() - plot().left());
  }
  event->accept();
}

void PlotView::resizeEvent(QResizeEvent*) {
  stale_ = still_stale_ = true;
}

void PlotView::paintEvent(QPaintEvent*) {
  const qreal ratio = devicePixelRatioF();
  const QSize wanted = size() * ratio;
  if (cache_.size() != wanted || cache_.devicePixelRatio() != ratio) {
    cache_ = QImage(wanted, QImage::Format_RGB32);
    cache_.setDevicePixelRatio(ratio);
    stale_ = still_stale_ = true;
  }
  if (stale_) {
    QPainter painter(&cache_);
    painter.setFont(font());
    if (!view_) {
      paint_empty(painter);
    } else {
      if (still_stale_) {
        painter.fillRect(QRect(0, 0, plot().left(), height()), theme_.gutter);
        render_still(painter);
      }
      painter.setClipRect(plot());
      render(painter, cache_);
    }
    stale_ = still_stale_ = false;
  }
  QPainter painter(this);
  painter.drawImage(0, 0, cache_);
  if (!view_) return;
  overlay(painter);
  paint_range(painter);
  paint_cursor(painter);
  if (hasFocus()) {
    painter.setPen(QPen(theme_.selection, theme_.contrast ? 3 : 1));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

void PlotView::paint_empty(QPainter& painter) {
  painter.setPen(theme_.faint);
  painter.fillRect(rect(), theme_.background);
  painter.drawText(rect().adjusted(24, 8, -24, -8), Qt::AlignCenter | Qt::TextWordWrap,
                   why_empty());
}

bool PlotView::is_launch_time() const {
  return view_ && view_->source == Source::measured && trace_ && trace_->trace.gpu.size() > 0;
}

QRect PlotView::source_box() const {
  const QFontMetrics metrics(font());
  const int wide = metrics.horizontalAdvance(word_for(view_->source)) + 14;
  return {width() - wide - 4, 2, wide, metrics.height() + 1};
}

void PlotView::paint_source(QPainter& painter) const {
  const QRect box = source_box();
  painter.fillRect(box.adjusted(-4, -2, 4, 1), theme_.gutter);
  const QColor color = theme_.source(view_->source);
  // The frame is drawn as the kind is: firm, dashed, dotted.
  const Qt::PenStyle style = view_->source == Source::measured    ? Qt::SolidLine
                             : view_->source == Source::predicted ? Qt::DashLine
                                                                  : Qt::DotLine;
  painter.setPen(QPen(color, 1, style));
  painter.setBrush(theme_.background);
  painter.drawRect(box.adjusted(0, 0, -1, -1));
  painter.setPen(contrast_ratio(color, theme_.background) > 4.5 ? color : theme_.text);
  painter.drawText(box, Qt::AlignCenter, word_for(view_->source));
}

void PlotView::paint_range(QPainter& painter) {
  if (!state_.range()) return;
  const TimeAxis axis = this->axis();
  const QRect at = plot();
  const double x0 = std::clamp(axis.x_of(state_.range()->begin), -1.0, axis.width() + 1);
  const double x1 = std::clamp(axis.x_of(state_.range()->end), -1.0, axis.width() + 1);
  painter.save();
  painter.setClipRect(at);
  const QRectF area(at.left() + x0, at.top(), x1 - x0, at.height());
  painter.fillRect(area, theme_.range);
  painter.setPen(QPen(theme_.selection, 1, Qt::DashLine));
  painter.drawLine(area.topLeft(), area.bottomLeft());
  painter.drawLine(area.topRight(), area.bottomRight());
  painter.restore();
}

void PlotView::paint_cursor(QPainter& painter) {
  if (!state_.cursor()) return;
  const QRect at = plot();
  const int x = at.left() + static_cast<int>(std::floor(axis().x_of(*state_.cursor()) + 1e-3));
  if (!at.contains(x, at.center().y())) return;
  painter.setPen(QPen(theme_.cursor, 1));
  painter.drawLine(x, at.top(), x, at.bottom());
}

}  // namespace stowage::gui
