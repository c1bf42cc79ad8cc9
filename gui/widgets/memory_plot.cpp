#include "gui/widgets/memory_plot.h"

#include <QFontMetrics>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPolygon>
#include <algorithm>
#include <cmath>

#include "gui/widgets/keys.h"
#include "gui/widgets/label_places.h"
#include "gui/widgets/memory_legend.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

constexpr int kGrip = 6;           // px above and below the line that take hold of it
constexpr int kLeastGap = 26;      // px between ticks of the scale
constexpr double kKeyStep = 0.01;  // of the scale

}  // namespace

MemoryPlot::MemoryPlot(ViewState& state, QWidget* parent) : PlotView(state, parent) {
  setObjectName(QStringLiteral("memory"));
  setAccessibleName(tr("Memory curve"));
  setAccessibleDescription(tr(
      "Requested bytes on the device over time, stacked by class. Drag the budget line, or press "
      "Ctrl+Up and Ctrl+Down."));
  setWhatsThis(accessibleDescription());
}

QSize MemoryPlot::minimumSizeHint() const {
  return {320, 4 * QFontMetrics(font()).height() + 80};
}

QSize MemoryPlot::sizeHint() const {
  return {960, 320};
}

QRect MemoryPlot::curve_rect() const {
  const int line = QFontMetrics(font()).height() + 4;
  return plot().adjusted(0, line, 0, -line);
}

Bytes MemoryPlot::peak() const {
  return view() ? view()->memory.peak() : 0;
}

ByteAxis MemoryPlot::byte_axis() const {
  Bytes highest = reserved_ ? std::max({peak(), reserved_->planned, reserved_->caching}) : peak();
  if (view()) {
    for (const MinMaxPyramid* counter : {&view()->memory.active, &view()->memory.reserved}) {
      if (counter->size() > 0) highest = std::max(highest, counter->extent(0, counter->size()).max);
    }
  }
  if (ghost_) highest = std::max(highest, ghost_->memory.peak());
  if (trace()) {
    const simulator::ReplayResult& resident = trace()->resident_cached;
    highest = std::max(highest, resident.peak_requested);
    if (reserved_) highest = std::max(highest, resident.peak_reserved);
  }
  return {frozen_top_.value_or(top_of(highest, budget_.value_or(0))),
          std::max(1, curve_rect().height())};
}

int MemoryPlot::budget_y() const {
  return curve_rect().top() + byte_axis().y_of(budget_.value_or(peak()));
}

void MemoryPlot::set_budget(std::optional<Bytes> budget, simulator::PeakKind on, bool kept,
                            Bytes counted_peak) {
  counted_peak_ = counted_peak;
  if (dragging_) {
    // The pointer is ahead of the answers.
    kept_ = kept;
    on_ = on;
    return update();
  }
  budget_ = budget;
  on_ = on;
  kept_ = kept;
  invalidate();
}

void MemoryPlot::set_reserved(const std::optional<ReservedLines>& reserved) {
  if (reserved_ == reserved) return;
  reserved_ = reserved;
  if (!dragging_) invalidate();
}

void MemoryPlot::set_ghost(StepPicturePtr before) {
  if (ghost_ == before) return;
  ghost_ = std::move(before);
  if (!dragging_) invalidate();
}

void MemoryPlot::render(QPainter& painter, QImage& canvas) {
  const QRect at = curve_rect();
  const TimeAxis shared = axis();
  const ByteAxis bytes = byte_axis();
  // In device pixels, so that the peak is one at every scaling. What is measured has a firm upper
  // edge, what is predicted none, what is assumed a dotted one.
  const qreal ratio = devicePixelRatioF();
  TimeAxis columns = shared;
  columns.set_width(std::floor(at.width() * ratio));
  const Source source = view()->source;
  const Outline outline = source == Source::measured    ? Outline::firm
                          : source == Source::predicted ? Outline::none
                                                        : Outline::dotted;
  // Rounded to device pixels, the curve may leave a line of them free.
  if (ratio != std::floor(ratio)) painter.fillRect(at, theme().background);
  CurveInk ink{theme(), outline, theme().background.rgb(), theme().grid.rgb(), {}};
  for (const AxisTick& tick : scale()) {
    for (double y = bytes.y_of(static_cast<Bytes>(tick.value)), end = y + 1; y < end;
         y += 1 / ratio) {
      ink.grid_rows.push_back(static_cast<int>(y * ratio));
    }
  }
  paint_memory(view()->memory, columns, {bytes.top, static_cast<int>(bytes.height * ratio)}, ink,
               canvas, {static_cast<int>(at.left() * ratio), static_cast<int>(at.top() * ratio)});
  painter.fillRect(QRect(at.left(), at.bottom() + 1, at.width(), height()), theme().gutter);
  for (const Tick& tick : shared.ticks()) {
    const int x = at.left() + static_cast<int>(std::floor(tick.x));
    painter.setPen(tick.major ? theme().frame : theme().grid);
    painter.drawLine(x, at.bottom() + 1, x, at.bottom() + (tick.major ? 6 : 3));
    const QString label = QString::fromStdString(tick.label);
    if (!tick.major || x + 6 + painter.fontMetrics().horizontalAdvance(label) > width()) continue;
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(x + 4, height() - painter.fontMetrics().descent() - 2, label);
  }
  painter.setClipRect(at);
  paint_ghost(painter);
  paint_lifetime(painter);
  paint_counter(painter, view()->memory.active, Qt::SolidLine);
  paint_counter(painter, view()->memory.reserved, Qt::DashLine);
  paint_peak(painter);
}

// The highest of each column, as the stack shows it; left out where it lies on the stack's edge,
// which tells what is measured from what is not.
void MemoryPlot::paint_counter(QPainter& painter, const MinMaxPyramid& counter,
                               Qt::PenStyle style) const {
  if (counter.size() == 0) return;
  const QRect at = curve_rect();
  const TimeAxis axis = this->axis();
  const ByteAxis bytes = byte_axis();
  painter.setPen(QPen(theme().text, 1, style));
  QPolygon line;
  const auto draw = [&] {
    if (line.size() > 1) painter.drawPolyline(line);
    line.clear();
  };
  for (int x = 0; x < at.width(); ++x) {
    const MemoryView::Range points = view()->memory.points(axis.time_at(x), axis.time_at(x + 1));
    const int y = bytes.y_of(counter.extent(points.first, points.last).max);
    const int edge = bytes.y_of(view()->memory.total.extent(points.first, points.last).max);
    if (std::abs(y - edge) < 2) {
      draw();
    } else {
      line << QPoint(at.left() + x, at.top() + y);
    }
  }
  draw();
}

// Of each column the highest, on the same axes; left out where it is that of the curve.
void MemoryPlot::paint_ghost(QPainter& painter) const {
  if (!ghost_ || ghost_->memory.empty()) return;
  const QRect at = curve_rect();
  const TimeAxis axis = this->axis();
  const ByteAxis bytes = byte_axis();
  const MemoryView& now = view()->memory;
  const MemoryView& before = ghost_->memory;
  painter.setPen(QPen(theme().text, 1, Qt::DashDotLine));
  QPolygon line;
  const auto draw = [&] {
    if (line.size() > 1) painter.drawPolyline(line);
    line.clear();
  };
  for (int x = 0; x < at.width() && axis.time_at(x) < static_cast<double>(ghost_->end); ++x) {
    const auto highest = [&](const MemoryView& memory) {
      const MemoryView::Range points = memory.points(axis.time_at(x), axis.time_at(x + 1));
      return bytes.y_of(memory.total.extent(points.first, points.last).max);
    };
    const int y = highest(before);
    if (std::abs(y - highest(now)) < 2) {
      draw();
    } else {
      line << QPoint(at.left() + x, at.top() + y);
    }
  }
  draw();
}

void MemoryPlot::paint_lifetime(QPainter& painter) const {
  if (!lifetime() || view()->memory.empty()) return;
  const Lifetime& life = *lifetime();
  const MemoryView& memory = view()->memory;
  const bool is_again = memory.has_again() && rows() &&
                        rows()->step().pass(life.storage) == simulator::Pass::recompute;
  const auto of_class = std::find(memory.classes.begin(), memory.classes.end(), life.storage_class);
  const std::size_t band = is_again ? memory.classes.size()
                                    : static_cast<std::size_t>(of_class - memory.classes.begin());
  const QRect at = curve_rect();
  const TimeAxis axis = this->axis();
  const ByteAxis bytes = byte_axis();
  QColor light = theme().text;
  light.setAlpha(theme().contrast ? 200 : 120);
  for (const TimeRange& there : life.there) {
    const int first = std::max(0, static_cast<int>(std::floor(axis.x_of(there.begin))));
    const int last =
        std::min(at.width(), std::max(first + 1, static_cast<int>(axis.x_of(there.end))));
    for (int x = first; x < last; ++x) {
      const MemoryView::Range points = memory.points(axis.time_at(x), axis.time_at(x + 1));
      const std::size_t most = memory.total.extent(points.first, points.last).max_at;
      Bytes below = 0;
      for (std::size_t b = 0; b < band && b < memory.bytes.size(); ++b) {
        below += memory.bytes[b][most];
      }
      const int bottom = bytes.y_of(below);
      const int top = std::min(bytes.y_of(below + life.bytes), bottom - 2);
      painter.fillRect(QRect(at.left() + x, at.top() + top, 1, bottom - top), light);
      painter.fillRect(QRect(at.left() + x, at.top() + top, 1, 1), theme().text);
    }
  }
}

std::vector<AxisTick> MemoryPlot::scale() const {
  const int most = curve_rect().height() / std::max(kLeastGap, fontMetrics().height());
  std::vector<AxisTick> ticks = byte_ticks(0, static_cast<double>(byte_axis().top), most);
  // The lowest one is at the frame.
  if (!ticks.empty()) ticks.erase(ticks.begin());
  return ticks;
}

void MemoryPlot::render_still(QPainter& painter) {
  const QRect at = curve_rect();
  const ByteAxis bytes = byte_axis();
  const int line = painter.fontMetrics().height();
  painter.fillRect(QRect(at.left(), 0, at.width(), at.top()), theme().gutter);
  painter.fillRect(QRect(at.left() - 1, 0, 1, height()), theme().frame);
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRect(4, 0, at.left() - 12, at.top()), Qt::AlignVCenter | Qt::AlignLeft,
                   tr("Requested"));
  for (const AxisTick& tick : scale()) {
    const int y = at.top() + bytes.y_of(static_cast<Bytes>(tick.value));
    painter.fillRect(QRect(at.left() - 5, y, 5, 1), theme().frame);
    if (y - line / 2 < at.top()) continue;
    painter.drawText(QRect(0, y - line / 2, at.left() - 8, line), Qt::AlignVCenter | Qt::AlignRight,
                     QString::fromStdString(tick.label));
  }
  painter.drawText(QRect(0, at.bottom() - line / 2, at.left() - 8, line),
                   Qt::AlignVCenter | Qt::AlignRight, QStringLiteral("0"));
  // Beside the labels of the time axis.
  painter.drawText(QRect(4, at.bottom() + 1, at.left() - 12, height() - at.bottom() - 1),
                   Qt::AlignBottom | Qt::AlignRight, clock_words());
  paint_source(painter);
  const int left = plot().left() + 6;
  paint_legend(painter, view()->memory, theme(), palette().color(QPalette::WindowText),
               QRect(left, 3, source_box().left() - 4 - left, at.top() - 3));
}

QString MemoryPlot::clock_words() const {
  if (!view() || !trace() || trace()->trace.gpu.size() == 0) return {};
  return is_launch_time() ? tr("launch time") : tr("device time");
}

QRect MemoryPlot::peak_mark() const {
  if (!view()) return {};
  const MemoryView& memory = view()->memory;
  const TimeAxis axis = this->axis();
  const double seen = memory.empty() ? -1 : axis.x_of(memory.time[memory.peak_at]);
  if (seen < 0 || seen >= axis.width()) return {};
  const QRect at = curve_rect();
  return {at.left() + static_cast<int>(std::floor(seen)) - 4,
          at.top() + byte_axis().y_of(memory.peak()) - 7, 9, 7};
}

QString MemoryPlot::peak_words() const {
  const MemoryView& memory = view()->memory;
  const QString peak = bytes_text(memory.peak());
  const QString time = time_text(memory.time[memory.peak_at]);
  if (!budget_ || on_ == simulator::PeakKind::requested || counted_peak_ < 0) {
    return tr("peak %1 at %2").arg(peak, time);
  }
  // The curve is of requested bytes, the budget's line is not.
  return tr("peak %1 requested at %2, %3 %4")
      .arg(peak, time, bytes_text(counted_peak_), QString::fromUtf8(simulator::name_of(on_)));
}

void MemoryPlot::paint_peak(QPainter& painter) const {
  const QRect mark = peak_mark();
  if (mark.isEmpty()) return;
  const int x = mark.left() + 4;
  const int y = mark.bottom() + 1;
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme().text);
  painter.drawPolygon(QPolygon({QPoint(x, y - 1), mark.topLeft(), QPoint(x + 5, y - 7)}));
}

QString MemoryPlot::budget_words() const {
  if (!budget_) return tr("drag down to set a budget");
  return tr("budget %1 on %2 bytes: %3")
      .arg(bytes_text(*budget_), QString::fromUtf8(simulator::name_of(on_)),
           kept_ ? tr("kept") : tr("not kept"));
}

std::vector<QRect> MemoryPlot::lines() const {
  const QRect at = curve_rect();
  // The budget's is two pixels high.
  std::vector<QRect> rows{QRect(at.left(), budget_y() - 1, at.width(), 2)};
  if (!reserved_) return rows;
  for (const Bytes value : {reserved_->caching, reserved_->planned}) {
    rows.emplace_back(at.left(), at.top() + byte_axis().y_of(value), at.width(), 1);
  }
  return rows;
}

// The budget's words at the right end, those of what is reserved from the left, the upper line's
// above it and the lower one's below; the peak's beside its mark.
MemoryPlot::Labels MemoryPlot::labels() const {
  const QFontMetrics metrics(font());
  const int high = metrics.height();
  const QRect at = curve_rect();
  const ByteAxis bytes = byte_axis();
  const QRect mark = peak_mark();
  LabelPlaces places(at);
  for (const QRect& line : lines()) places.take(line);
  if (!mark.isEmpty()) places.take(mark);
  const auto put = [&](const QString& text, int room, QList<int> lefts, int top) {
    const QSize size(metrics.horizontalAdvance(text) + room, high);
    // A left end below 0 is a right end, counted from the plot's.
    for (int& left : lefts) left = left < 0 ? at.right() + 2 + left - size.width() : left;
    return Label{text, places.put(size, lefts, top)};
  };
  Labels labels;
  const int near_left = at.left() + 4;
  labels.budget = put(budget_words(), 18, {-5, near_left}, budget_y() - high - 3);
  if (reserved_) {
    const bool caching_is_above = reserved_->caching >= reserved_->planned;
    const auto beside = [&](Bytes value, bool is_above) {
      const int y = at.top() + bytes.y_of(value);
      return is_above ? y - high - 1 : y + 2;
    };
    labels.caching = put(tr("caching allocator reserves %1").arg(bytes_text(reserved_->caching)), 8,
                         {near_left, -5}, beside(reserved_->caching, caching_is_above));
    labels.planned = put(tr("planned memory %1").arg(bytes_text(reserved_->planned)), 8,
                         {near_left, -5}, beside(reserved_->planned, !caching_is_above));
  }
  if (mark.isEmpty()) return labels;
  const QString words = peak_words();
  const int wide = metrics.horizontalAdvance(words) + 8;
  const int x = mark.left() + 4;
  labels.peak = put(words, 8, {x + 8, std::max(at.left(), x - 8 - wide)}, mark.bottom() - high - 1);
  return labels;
}

// That of the plan's memory is solid.
void MemoryPlot::paint_reserved(QPainter& painter) const {
  if (!reserved_) return;
  const QRect at = curve_rect();
  const ByteAxis bytes = byte_axis();
  const bool is_planned = reserved_->placement == simulator::PlacementMode::planned;
  for (const bool of_planned : {false, true}) {
    const int y = at.top() + bytes.y_of(of_planned ? reserved_->planned : reserved_->caching);
    const bool is_own = of_planned == is_planned;
    painter.setPen(
        QPen(is_own ? theme().text : theme().faint, 1, is_own ? Qt::SolidLine : Qt::DotLine));
    painter.drawLine(at.left(), y, at.right(), y);
  }
}

void MemoryPlot::paint_label(QPainter& painter, const Label& label, const QColor& ink) const {
  if (label.box.isEmpty()) return;
  QColor paper = theme().background;
  paper.setAlpha(theme().contrast ? 255 : 215);
  painter.fillRect(label.box, paper);
  painter.setPen(ink);
  painter.drawText(label.box, Qt::AlignCenter, label.text);
}

void MemoryPlot::paint_budget_label(QPainter& painter, const Label& label) const {
  const QRect& box = label.box;
  painter.fillRect(box, theme().background);
  painter.setPen(budget_ ? theme().text : theme().faint);
  painter.drawText(box.adjusted(12, 0, -2, 0), Qt::AlignVCenter, label.text);
  // A grip to see that it can be moved.
  for (const int off : {-3, 0, 3}) {
    painter.fillRect(QRect(box.left() + 3, box.center().y() + off, 6, 1), theme().frame);
  }
}

void MemoryPlot::overlay(QPainter& painter) {
  paint_reserved(painter);
  const QRect at = curve_rect();
  const ByteAxis bytes = byte_axis();
  const int y = budget_y();
  // The part of the curve that is above it.
  if (budget_ && *budget_ < peak()) {
    const int top = at.top() + bytes.y_of(peak());
    painter.fillRect(QRect(at.left(), top, at.width(), y - top), theme().over);
  }
  painter.setPen(QPen(budget_ ? theme().budget : theme().faint, budget_ ? 2 : 1,
                      budget_ ? Qt::DashLine : Qt::DotLine));
  painter.drawLine(at.left(), y, at.right(), y);
  const Labels labels = this->labels();
  const bool is_planned = reserved_ && reserved_->placement == simulator::PlacementMode::planned;
  paint_label(painter, labels.caching, is_planned ? theme().faint : theme().text);
  paint_label(painter, labels.planned, is_planned ? theme().text : theme().faint);
  paint_label(painter, labels.peak, theme().text);
  paint_budget_label(painter, labels.budget);
}

std::int64_t MemoryPlot::point_at(const QPoint& at) const {
  if (!view() || view()->memory.empty() || !curve_rect().contains(at)) return -1;
  const TimeAxis axis = this->axis();
  const double x = at.x() - plot().left();
  const MemoryView& memory = view()->memory;
  const MemoryView::Range points = memory.points(axis.time_at(x), axis.time_at(x + 1));
  return static_cast<std::int64_t>(memory.total.extent(points.first, points.last).max_at);
}

Selection MemoryPlot::hit(const QPoint& at) const {
  const std::int64_t point = point_at(at);
  if (point < 0) return {};
  return {Selection::Kind::event, view()->memory.event[static_cast<std::size_t>(point)].value};
}

QString MemoryPlot::describe(const QPoint& at) const {
  const std::int64_t point = point_at(at);
  if (point < 0) return {};
  const auto row = static_cast<std::size_t>(point);
  const MemoryView& memory = view()->memory;
  const QString time = time_text(memory.time[row]);
  QString text = tr("%1 requested at %2 (%3)")
                     .arg(exact_bytes_text(memory.total[row]),
                          is_launch_time() ? tr("%1 of launch time").arg(time) : time,
                          word_for(view()->source));
  if (memory.active.size() > 0) {
    text += tr("\nactive %1 (solid line)").arg(bytes_text(memory.active[row]));
  }
  if (memory.reserved.size() > 0) {
    text += tr("\nreserved %1 (dashed line)").arg(bytes_text(memory.reserved[row]));
  }
  for (std::size_t c = memory.bytes.size(); c-- > 0;) {
    if (memory.bytes[c][row] == 0) continue;
    text += tr("\n%1: %2").arg(band_word(memory, c), bytes_text(memory.bytes[c][row]));
  }
  return text;
}

std::optional<TimeRange> MemoryPlot::selected_time() const {
  if (!view() || selected().kind != Selection::Kind::event) return std::nullopt;
  const MemoryView& memory = view()->memory;
  const EventId event(selected().row);
  const auto at = std::lower_bound(memory.event.begin(), memory.event.end(), event);
  if (at == memory.event.end()) return std::nullopt;
  const Nanoseconds time = memory.time[static_cast<std::size_t>(at - memory.event.begin())];
  return TimeRange{time, time};
}

bool MemoryPlot::begin_drag(const QPoint& at) {
  if (!curve_rect().contains(at) || std::abs(at.y() - budget_y()) > kGrip) return false;
  frozen_top_ = byte_axis().top;
  dragging_ = true;
  grabbed_at_ = at;
  ++drags_;
  return true;
}

void MemoryPlot::drag(const QPoint& at) {
  const Bytes budget = std::max<Bytes>(1, byte_axis().bytes_at(at.y() - curve_rect().top()));
  if (budget_ == budget) return;
  budget_ = budget;
  update();
  Q_EMIT budget_dragged(budget, drags_);
}

void MemoryPlot::end_drag(const QPoint& at) {
  if (!dragging_) return;
  dragging_ = false;
  frozen_top_.reset();
  invalidate();
  // A click on the line moves nothing.
  if (at != grabbed_at_ && budget_) Q_EMIT budget_dropped(*budget_);
}

void MemoryPlot::mouseMoveEvent(QMouseEvent* event) {
  PlotView::mouseMoveEvent(event);
  const bool grip = view() && curve_rect().contains(event->pos()) &&
                    std::abs(event->pos().y() - budget_y()) <= kGrip;
  setCursor(grip || dragging_ ? Qt::SizeVerCursor : Qt::ArrowCursor);
}

void MemoryPlot::keyPressEvent(QKeyEvent* event) {
  const std::optional<Key> key = key_of(*event, KeyPlace::memory);
  if (!key || !view()) return PlotView::keyPressEvent(event);
  const bool up = *key == Key::budget_up;
  const auto step = static_cast<Bytes>(static_cast<double>(byte_axis().top) * kKeyStep);
  budget_ = std::max<Bytes>(1, budget_.value_or(peak()) + (up ? step : -step));
  ++drags_;
  invalidate();
  Q_EMIT budget_dragged(*budget_, drags_);
}

}  // namespace stowage::gui
