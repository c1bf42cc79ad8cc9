#include "gui/widgets/timeline_plot.h"

#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "gui/model/link_use.h"
#include "gui/model/name_search.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

constexpr double kSlack = 3;  // px beside a thin span that still hit it
constexpr int kLaneGap = 3;
constexpr double kLeastArrow = 24;  // px of a stall whose arrow is painted unasked

bool is_copy(LaneKind kind) {
  return kind == LaneKind::d2h || kind == LaneKind::h2d;
}

}  // namespace

TimelinePlot::TimelinePlot(ViewState& state, QWidget* parent) : PlotView(state, parent) {
  setObjectName(QStringLiteral("timeline"));
  setAccessibleName(tr("Timeline"));
  setAccessibleDescription(tr(
      "Lanes over time: layers, CPU launch, compute, copies out and back, stalls. W and S zoom, A "
      "and D pan, Home shows all, P goes to the memory peak."));
  setWhatsThis(accessibleDescription());
}

int TimelinePlot::line_height() const {
  return QFontMetrics(font()).height() + 4;
}

int TimelinePlot::header_height() const {
  return 2 * line_height() + 6;
}

// One for the lifetime of what is selected, one for the link, one for the host where something is
// there, one for all of the step.
int TimelinePlot::rows_below() const {
  return view() && view()->host.arena > 0 ? 4 : 3;
}

int TimelinePlot::total_rows() const {
  int rows = rows_below();
  for (const LaneView& lane : view()->lanes) {
    rows += std::max(1, static_cast<int>(lane.rows.size()));
  }
  return rows;
}

QSize TimelinePlot::minimumSizeHint() const {
  return {320, header_height() + 7 * (line_height() + kLaneGap)};
}

// As high as the lanes are with rows of a comfortable height.
QSize TimelinePlot::sizeHint() const {
  const int rows = view() ? total_rows() : 11;
  const int lanes = view() ? static_cast<int>(view()->lanes.size()) + rows_below() : 10;
  return {960, header_height() + rows * (line_height() + 4) + lanes * kLaneGap + 4};
}

int TimelinePlot::row_height() const {
  const int lanes = static_cast<int>(view()->lanes.size()) + rows_below();
  const int room = height() - header_height() - lanes * kLaneGap - 2;
  return std::clamp(room / total_rows(), line_height() - 4, 2 * line_height());
}

QRect TimelinePlot::lifetime_rect() const {
  if (!view()) return {};
  const int lanes = static_cast<int>(view()->lanes.size());
  const int y = header_height() + (total_rows() - rows_below()) * row_height() + lanes * kLaneGap;
  return {plot().left(), y, plot().width(), row_height()};
}

QRect TimelinePlot::link_rect() const {
  return view() ? lifetime_rect().translated(0, row_height() + kLaneGap) : QRect();
}

QRect TimelinePlot::host_rect() const {
  const bool is_there = view() && view()->host.arena > 0;
  return is_there ? link_rect().translated(0, row_height() + kLaneGap) : QRect();
}

QRect TimelinePlot::row_rect(LaneKind kind, std::size_t row) const {
  if (!view()) return {};
  const int each = row_height();
  int y = header_height();
  for (const LaneView& lane : view()->lanes) {
    const auto rows = std::max<std::size_t>(1, lane.rows.size());
    if (lane.kind == kind) {
      return {plot().left(), y + static_cast<int>(row) * each, plot().width(), each};
    }
    y += static_cast<int>(rows) * each + kLaneGap;
  }
  return {};
}

std::optional<TimelinePlot::Found> TimelinePlot::find(const QPoint& at) const {
  if (!view() || !plot().contains(at)) return std::nullopt;
  const TimeAxis axis = this->axis();
  const double time = axis.time_at(at.x() - plot().left() + 0.5);
  for (const LaneView& lane : view()->lanes) {
    for (std::size_t r = 0; r < lane.rows.size(); ++r) {
      if (!row_rect(lane.kind, r).contains(at)) continue;
      const std::int64_t span = lane.rows[r].spans.at(time, kSlack * axis.ns_per_pixel());
      if (span < 0) return std::nullopt;
      return Found{&lane, &lane.rows[r], static_cast<std::size_t>(span)};
    }
  }
  return std::nullopt;
}

Selection TimelinePlot::hit(const QPoint& at) const {
  const auto found = find(at);
  if (!found) return {};
  const SpanInfo& info = found->row->infos[found->span];
  return {info.kind, info.row};
}

QString TimelinePlot::describe(const QPoint& at) const {
  if (lifetime() && lifetime_rect().contains(at)) {
    return tr("%1\n%2 (%3)")
        .arg(QString::fromStdString(lifetime()->name),
             QString::fromStdString(lifetime_text(*lifetime())), word_for(view()->source));
  }
  if (link_rect().contains(at)) return link_words(at);
  if (host_rect().contains(at)) return host_words(at);
  const auto found = find(at);
  if (!found) return {};
  const SpanInfo& info = found->row->infos[found->span];
  const CutWork* cut = found->row->cut_of(found->span);
  const Nanoseconds begin = cut != nullptr ? cut->begin : found->row->spans.begin(found->span);
  const Nanoseconds end = cut != nullptr ? cut->end : found->row->spans.end(found->span);
  const Nanoseconds duration = end - begin;
  QString name = QString::fromStdString(text_of(info.name)).left(200);
  if (info.kind == Selection::Kind::event) name = tr("waits for the device");
  if (found->lane->kind == LaneKind::updates)
    name = tr("the host updates parameter of %1").arg(name);
  if (found->lane->kind == LaneKind::stalls) name = stall_words(info, name);
  QString text = tr("%1\n%2 at %3 (%4)")
                     .arg(name.isEmpty() ? word_for(found->lane->kind) : name, time_text(duration),
                          time_text(begin), word_for(view()->source));
  if (found->lane->kind == LaneKind::compute && info.name.valid()) {
    text += QLatin1Char('\n') + tr(report::words_of(report::family_of(text_of(info.name))));
  }
  if (info.again) {
    text += tr("\nruns again in backward: recompute of %1").arg(original_words(info));
  }
  if (cut != nullptr)
    text += tr("\ncut by stalls, which take %1 of that").arg(time_text(cut->stall));
  if (const Bytes bytes = found->row->bytes_of(found->span); bytes > 0) {
    text += is_copy(found->lane->kind) ? tr("\n%1 at %2")
                                             .arg(exact_bytes_text(bytes),
                                                  rate_text(gigabytes_per_second(bytes, duration)))
                                       : tr("\n%1").arg(exact_bytes_text(bytes));
  }
  return text;
}

QString TimelinePlot::link_words(const QPoint& at) const {
  const LinkUse use = link_use(*view(), axis());
  const int x = at.x() - plot().left();
  if (x < 0 || static_cast<std::size_t>(x) >= use.out.size() || use.most <= 0) return {};
  const auto pixel = static_cast<std::size_t>(x);
  return tr("link: %1 out, %2 back (%3)\nthe fastest copy of the step has %4")
      .arg(rate_text(use.out[pixel]), rate_text(use.back[pixel]), word_for(view()->source),
           rate_text(use.most));
}

QString TimelinePlot::host_words(const QPoint& at) const {
  const HostView& host = view()->host;
  const TimeAxis axis = this->axis();
  const auto begin = static_cast<Nanoseconds>(axis.time_at(at.x() - plot().left()));
  const auto end = static_cast<Nanoseconds>(axis.time_at(at.x() - plot().left() + 1));
  QString text = tr("host: %1 in use of the %2 that the plan takes there (%3)")
                     .arg(bytes_text(host.use.most_in(begin, std::max(begin + 1, end))),
                          bytes_text(host.arena), word_for(view()->source));
  if (host.budget) text += tr("\nits budget there is %1").arg(bytes_text(*host.budget));
  return text;
}

// Of a stall's span: what its longest one waits for, and how many there are.
QString TimelinePlot::stall_words(const SpanInfo& info, const QString& name) const {
  const StallGroup& group = view()->waits.group_of(info.row);
  if (group.count == 1) return tr("compute waits for %1").arg(name);
  return tr("compute waits %1 times in a row, longest for %2").arg(group.count).arg(name);
}

// What runs again: the op of forward with the layer that it is of, or the layer itself.
QString TimelinePlot::original_words(const SpanInfo& info) const {
  if (!rows()) return {};
  const OpId original =
      info.kind == Selection::Kind::op ? rows()->original_of(OpId(info.row)) : OpId();
  const Selection of = original.valid() ? Selection{Selection::Kind::op, original.value}
                                        : Selection{info.kind, info.row};
  return QString::fromStdString(name_of(rows()->step().trace(), of));
}

Selection TimelinePlot::in_lanes() const {
  Selection selection = selected();
  const bool is_stall = selection.kind == Selection::Kind::stall && selection.row >= 0;
  if (is_stall && static_cast<std::size_t>(selection.row) < view()->waits.wait_of.size()) {
    selection.row = view()->waits.group_of(selection.row).longest;
  }
  if (selection.kind != Selection::Kind::op || selection.row < 0 || !trace()) return selection;
  const bool is_recording = view()->source == Source::measured || !rows();
  const Ops& ops = is_recording ? trace()->trace.ops : rows()->step().trace().ops;
  if (static_cast<std::size_t>(selection.row) >= ops.size()) return {};
  for (OpId at(selection.row); at.valid(); at = ops.parent[at.index()]) selection.row = at.value;
  return selection;
}

std::optional<TimeRange> TimelinePlot::selected_time() const {
  if (!view()) return std::nullopt;
  const Selection selection = in_lanes();
  // A layer has several spans: the one nearest to the cursor is meant.
  const auto cursor = state().cursor();
  std::optional<TimeRange> best;
  Nanoseconds distance = 0;
  for (const LaneView& lane : view()->lanes) {
    for (const LaneRow& row : lane.rows) {
      for (std::size_t i = 0; i < row.infos.size(); ++i) {
        if (row.infos[i].kind != selection.kind || row.infos[i].row != selection.row) continue;
        const TimeRange at{row.spans.begin(i), row.spans.end(i)};
        const Nanoseconds off =
            cursor ? std::max({at.begin - *cursor, *cursor - at.end, Nanoseconds{0}}) : at.begin;
        if (best && off >= distance) continue;
        best = at;
        distance = off;
      }
    }
  }
  return best;
}

void TimelinePlot::render(QPainter& painter, QImage& canvas) {
  const TimeAxis axis = this->axis();
  paint_background(painter);
  paint_ruler(painter, axis);
  paint_source(painter);
  paint_phases(painter, axis);
  const auto name_of_string = [this](StringId id) { return text_of(id); };
  paint_lifetime(painter, axis);
  paint_link(painter, axis);
  paint_host(painter, axis);
  paint_minimap(painter, axis);
  for (const LaneView& lane : view()->lanes) {
    const QRect first = row_rect(lane.kind);
    painter.fillRect(QRect(first.left(), first.top() - kLaneGap + 1, width(), 1), theme().grid);
    if (lane.rows.empty()) {
      painter.setPen(theme().faint);
      painter.drawText(first.adjusted(6, 0, -6, 0), Qt::AlignVCenter | Qt::AlignLeft,
                       painter.fontMetrics().elidedText(QString::fromStdString(lane.why_empty),
                                                        Qt::ElideRight, first.width() - 12));
      continue;
    }
    for (std::size_t r = 0; r < lane.rows.size(); ++r) {
      lane_painter_.paint(painter, canvas, row_rect(lane.kind, r), lane.kind, lane.rows[r], axis,
                          theme(), in_lanes(), name_of_string);
    }
  }
  paint_waits(painter);
}

std::vector<TimelinePlot::WaitArrow> TimelinePlot::wait_arrows() const {
  std::vector<WaitArrow> arrows;
  if (!view()) return arrows;
  const TimeAxis axis = this->axis();
  const Selection now = selected();
  const Selection group = in_lanes();
  const QRect stalls = row_rect(LaneKind::stalls);
  const int left = plot().left();
  for (const StallWait& wait : view()->waits.waits) {
    if (wait.copy < 0 || static_cast<double>(wait.at.begin) > axis.end() ||
        static_cast<double>(wait.at.end) < axis.begin()) {
      continue;
    }
    const auto of_kind = wait.is_update ? Selection::Kind::update : Selection::Kind::transfer;
    const std::int32_t longest = view()->waits.groups[static_cast<std::size_t>(wait.group)].longest;
    const bool is_selected =
        now == Selection{of_kind, wait.copy} || group == Selection{Selection::Kind::stall, longest};
    const double wide = axis.x_of(wait.at.end) - axis.x_of(wait.at.begin);
    if (!is_selected && wide < kLeastArrow) continue;
    const LaneKind lane = wait.is_update  ? LaneKind::updates
                          : wait.is_store ? LaneKind::d2h
                                          : LaneKind::h2d;
    const QRect copies = row_rect(lane);
    const auto x = [&](Nanoseconds time) {
      return left + static_cast<int>(std::clamp(axis.x_of(time), 0.0, axis.width() - 1));
    };
    // The lane of updates lies below that of the stalls.
    const bool is_below = copies.top() > stalls.top();
    arrows.push_back({{x(wait.of.end), is_below ? copies.top() + 2 : copies.bottom() - 2},
                      {x(wait.at.end), is_below ? stalls.bottom() - 1 : stalls.top() + 1},
                      wait.stall,
                      is_selected});
  }
  return arrows;
}

void TimelinePlot::paint_waits(QPainter& painter) {
  constexpr int kHead = 4;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  for (const WaitArrow& arrow : wait_arrows()) {
    // A rim of the background's colour: it is seen over spans of any colour.
    const QColor ink = arrow.is_selected ? theme().selection : theme().text;
    for (const auto& [color, width] :
         {std::pair(theme().background, 4.0), std::pair(ink, arrow.is_selected ? 2.0 : 1.0)}) {
      painter.setPen(QPen(color, width));
      painter.drawLine(arrow.from, arrow.to);
      painter.setBrush(color);
      const int down = arrow.to.y() > arrow.from.y() ? kHead : -kHead;
      const QPoint head[] = {arrow.to + QPoint(0, down), arrow.to + QPoint(-kHead, -1),
                             arrow.to + QPoint(kHead, -1)};
      painter.drawConvexPolygon(head, 3);
    }
  }
  painter.restore();
}

QRect TimelinePlot::minimap_rect() const {
  if (!view()) return {};
  const QRect above = host_rect().isEmpty() ? link_rect() : host_rect();
  return above.translated(0, row_height() + kLaneGap);
}

TimeAxis TimelinePlot::whole_step() const {
  TimeAxis whole(state().axis().length(), plot().width());
  whole.fit();
  return whole;
}

// The memory curve of the whole step; what is seen above has a frame, the rest is paler.
void TimelinePlot::paint_minimap(QPainter& painter, const TimeAxis& axis) {
  const QRect area = minimap_rect();
  painter.fillRect(QRect(area.left(), area.top() - kLaneGap + 1, width(), 1), theme().grid);
  const MemoryView& memory = view()->memory;
  const TimeAxis whole = whole_step();
  const int left =
      area.left() + static_cast<int>(whole.x_of(static_cast<Nanoseconds>(axis.begin())));
  const int right =
      area.left() + static_cast<int>(std::ceil(whole.x_of(static_cast<Nanoseconds>(axis.end()))));
  if (!memory.empty()) {
    const auto peak = static_cast<double>(std::max<Bytes>(1, memory.peak()));
    const QColor seen = theme().lane(LaneKind::compute);
    const QColor rest = mix(seen, theme().background, 0.4);
    for (int x = 0; x < area.width(); ++x) {
      const MemoryView::Range points = memory.points(whole.time_at(x), whole.time_at(x + 1));
      const auto most = static_cast<double>(memory.total.extent(points.first, points.last).max);
      const int rows = static_cast<int>(std::ceil(most / peak * (area.height() - 2)));
      const int at = area.left() + x;
      painter.fillRect(at, area.bottom() - rows, 1, rows, at >= left && at < right ? seen : rest);
    }
  }
  painter.setPen(QPen(theme().selection, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(
      QRect(left, area.top(), std::max(3, right - left), area.height() - 1).adjusted(1, 1, -1, 0));
}

bool TimelinePlot::begin_drag(const QPoint& at) {
  if (!minimap_rect().contains(at)) return false;
  drag(at);
  return true;
}

void TimelinePlot::drag(const QPoint& at) {
  TimeAxis axis = this->axis();
  axis.centre_on(whole_step().time_at(at.x() - plot().left()));
  state().set_axis(axis);
}

// Out above the middle, back below it; as high as the row is the fastest copy of the step.
void TimelinePlot::paint_link(QPainter& painter, const TimeAxis& axis) {
  const QRect area = link_rect();
  painter.fillRect(QRect(area.left(), area.top() - kLaneGap + 1, width(), 1), theme().grid);
  const LinkUse use = link_use(*view(), axis);
  if (use.most <= 0) {
    painter.setPen(theme().faint);
    painter.drawText(area.adjusted(6, 0, -6, 0), Qt::AlignVCenter | Qt::AlignLeft,
                     tr("nothing goes over the link"));
    return;
  }
  const int half = area.height() / 2 - 1;
  const int middle = area.top() + area.height() / 2;
  const auto rows = [&](double rate) {
    return rate <= 0 ? 0 : std::clamp(static_cast<int>(std::ceil(rate / use.most * half)), 1, half);
  };
  for (std::size_t x = 0; x < use.out.size(); ++x) {
    const int at = area.left() + static_cast<int>(x);
    const int up = rows(use.out[x]);
    const int down = rows(use.back[x]);
    painter.fillRect(at, middle - up, 1, up, theme().lane(LaneKind::d2h));
    painter.fillRect(at, middle + 1, 1, down, theme().lane(LaneKind::h2d));
  }
  painter.fillRect(area.left(), middle, area.width(), 1, theme().frame);
}

// A dashed line: what the plan takes. A line of the budget's colour: its budget.
void TimelinePlot::paint_host(QPainter& painter, const TimeAxis& axis) {
  constexpr Bytes kNear = 4;  // times what the plan takes; a line further up would flatten the rest
  const QRect area = host_rect();
  if (area.isEmpty()) return;
  const HostView& host = view()->host;
  painter.fillRect(QRect(area.left(), area.top() - kLaneGap + 1, width(), 1), theme().grid);
  const bool has_line = host.budget && *host.budget / kNear <= host.arena;
  const Bytes top = std::max(host.arena, has_line ? *host.budget : 0);
  const auto rows = [&](Bytes bytes) {
    const double share = static_cast<double>(bytes) / static_cast<double>(top);
    return static_cast<int>(std::ceil(share * (area.height() - 3)));
  };
  for (int x = 0; x < area.width(); ++x) {
    const auto begin = static_cast<Nanoseconds>(axis.time_at(x));
    const auto end = static_cast<Nanoseconds>(axis.time_at(x + 1));
    const int high = rows(host.use.most_in(begin, std::max(begin + 1, end)));
    painter.fillRect(area.left() + x, area.bottom() - high, 1, high,
                     theme().storage(StorageClass::optimizer_state));
  }
  const auto line = [&](Bytes bytes, const QPen& pen) {
    painter.setPen(pen);
    const int y = area.bottom() - rows(bytes);
    painter.drawLine(area.left(), y, area.right(), y);
  };
  line(host.arena, QPen(theme().text, 1, Qt::DashLine));
  if (has_line) line(*host.budget, QPen(theme().budget, 2));
}

// High: in use. Low: it lies there. Hatched: nothing uses it any more. A dotted line: it is away.
void TimelinePlot::paint_lifetime(QPainter& painter, const TimeAxis& axis) {
  const QRect area = lifetime_rect();
  painter.fillRect(QRect(area.left(), area.top() - kLaneGap + 1, width(), 1), theme().grid);
  if (!lifetime()) {
    painter.setPen(theme().faint);
    painter.drawText(
        area.adjusted(6, 0, -6, 0), Qt::AlignVCenter | Qt::AlignLeft,
        painter.fontMetrics().elidedText(
            tr("select an op, a saved tensor, a storage, a copy or a stall: when its bytes "
               "are made, used and freed"),
            Qt::ElideRight, area.width() - 12));
    return;
  }
  const Lifetime& life = *lifetime();
  const QRect high = area.adjusted(0, 2, 0, -2);
  const QRect low(high.left(), high.center().y() - high.height() / 6, high.width(),
                  std::max(3, high.height() / 3));
  const auto box = [&](const QRect& row, const TimeRange& range) {
    const double left = std::clamp(axis.x_of(range.begin), -1.0, axis.width());
    const double right = std::clamp(axis.x_of(range.end), -1.0, axis.width());
    const int x = row.left() + static_cast<int>(std::floor(left));
    return QRect(x, row.top(), std::max(2, static_cast<int>(right - left)), row.height());
  };
  const QColor color = theme().storage(life.storage_class);
  painter.setBrush(Qt::NoBrush);
  if (!life.there.empty()) {
    painter.setPen(QPen(theme().text, 1, Qt::DotLine));
    const QRect all = box(low, {life.there.front().begin, life.there.back().end});
    painter.drawLine(all.left(), low.center().y(), all.right(), low.center().y());
  }
  for (const TimeRange& there : life.there) {
    painter.fillRect(box(low, there), color);
    painter.setPen(theme().text);
    painter.drawRect(box(low, there).adjusted(0, 0, -1, -1));
  }
  if (life.dead) {
    painter.fillRect(box(low, *life.dead), theme().background);
    painter.fillRect(box(low, *life.dead), QBrush(theme().text, Qt::BDiagPattern));
    painter.drawRect(box(low, *life.dead).adjusted(0, 0, -1, -1));
  }
  for (const TimeRange& use : life.uses) {
    painter.fillRect(box(high, use), color);
    painter.fillRect(QRect(box(high, use).left(), high.top(), 1, high.height()), theme().text);
  }
}

// Not below the spans of a row: they are painted into its first row of pixels and copied down.
void TimelinePlot::paint_background(QPainter& painter) {
  const QRect at = plot();
  // Rounded to device pixels, rows may leave lines of them free.
  if (devicePixelRatioF() != std::floor(devicePixelRatioF())) {
    return painter.fillRect(at, theme().background);
  }
  int y = 0;
  const auto fill_to = [&](int bottom) {
    painter.fillRect(QRect(at.left(), y, at.width(), bottom - y), theme().background);
  };
  for (const LaneView& lane : view()->lanes) {
    for (std::size_t r = 0; r < lane.rows.size(); ++r) {
      const QRect below = LanePainter::spans_rect(row_rect(lane.kind, r)).adjusted(0, 1, 0, 0);
      fill_to(below.top());
      y = below.bottom() + 1;
    }
  }
  fill_to(height());
}

void TimelinePlot::paint_ruler(QPainter& painter, const TimeAxis& axis) {
  const int right = source_box().left() - 4;
  const QRect at = plot();
  const int bottom = line_height() + 2;
  painter.fillRect(QRect(at.left(), 0, at.width(), bottom), theme().gutter);
  for (const Tick& tick : axis.ticks()) {
    const int x = at.left() + static_cast<int>(std::floor(tick.x));
    painter.setPen(tick.major ? theme().frame : theme().grid);
    painter.drawLine(x, tick.major ? 2 : bottom - 5, x, bottom);
    if (!tick.major) continue;
    painter.setPen(theme().grid);
    painter.drawLine(x, bottom, x, height());
    const QString label = QString::fromStdString(tick.label);
    if (x + 8 + painter.fontMetrics().horizontalAdvance(label) > right) continue;
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(x + 4, painter.fontMetrics().ascent() + 2, label);
  }
}

void TimelinePlot::paint_phases(QPainter& painter, const TimeAxis& axis) {
  const auto& phases = view()->phases;
  const int top = line_height() + 3;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Nanoseconds end = i + 1 < phases.size() ? phases[i + 1].begin : view()->end;
    const double x0 = std::max(0.0, axis.x_of(phases[i].begin));
    const double x1 = std::min(axis.width(), axis.x_of(end));
    if (x1 - x0 < 1) continue;
    const QRect box(plot().left() + static_cast<int>(std::floor(x0)), top,
                    static_cast<int>(x1 - x0), line_height());
    painter.fillRect(box, mix(theme().text, theme().background, i % 2 == 0 ? 0.10 : 0.20));
    painter.fillRect(QRect(box.left(), top, 1, height()), theme().frame);
    painter.setPen(theme().text);
    const QString name = QString::fromStdString(phases[i].name);
    if (painter.fontMetrics().horizontalAdvance(name) + 10 < box.width()) {
      painter.drawText(box.adjusted(5, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, name);
    }
  }
}

void TimelinePlot::render_still(QPainter& painter) {
  const int left = plot().left();
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRect(8, 0, left - 12, line_height() + 2), Qt::AlignVCenter, tr("Time"));
  painter.drawText(QRect(8, line_height() + 3, left - 12, line_height()), Qt::AlignVCenter,
                   tr("Phase"));
  for (const LaneView& lane : view()->lanes) {
    const QRect row = row_rect(lane.kind);
    painter.fillRect(QRect(0, row.top() - kLaneGap + 1, left, 1), theme().grid);
    // The colour of the lane beside its name; of stalls with the hatch.
    const QRect mark(2, row.top() + 2, 4, std::max(4, row.height() - 4));
    painter.fillRect(mark, theme().lane(lane.kind));
    painter.drawText(QRect(10, row.top(), left - 12, row.height()), Qt::AlignVCenter,
                     word_for(lane.kind));
  }
  const QRect life = lifetime_rect();
  painter.fillRect(QRect(0, life.top() - kLaneGap + 1, left, 1), theme().grid);
  painter.drawText(QRect(10, life.top(), left - 12, life.height()), Qt::AlignVCenter,
                   tr("Lifetime"));
  const QRect link = link_rect();
  painter.fillRect(QRect(0, link.top() - kLaneGap + 1, left, 1), theme().grid);
  painter.drawText(QRect(10, link.top(), left - 12, link.height()), Qt::AlignVCenter, tr("Link"));
  if (const QRect host = host_rect(); !host.isEmpty()) {
    painter.fillRect(QRect(0, host.top() - kLaneGap + 1, left, 1), theme().grid);
    painter.drawText(QRect(10, host.top(), left - 12, host.height()), Qt::AlignVCenter, tr("Host"));
  }
  const QRect mini = minimap_rect();
  painter.fillRect(QRect(0, mini.top() - kLaneGap + 1, left, 1), theme().grid);
  painter.drawText(QRect(10, mini.top(), left - 12, mini.height()), Qt::AlignVCenter,
                   tr("Whole step"));
  painter.fillRect(QRect(left - 1, 0, 1, height()), theme().frame);
}

void TimelinePlot::overlay(QPainter& painter) {
  if (!state().range()) return;
  const QString text = range_text(measure(*view(), *state().range()));
  const QFontMetrics metrics(font());
  const int wide = std::min(metrics.horizontalAdvance(text) + 16, plot().width());
  const double x = axis().x_of(state().range()->begin);
  const int left =
      plot().left() + std::clamp(static_cast<int>(x), 0, std::max(0, plot().width() - wide));
  const QRect box(left, line_height() + 3, wide, line_height());
  painter.fillRect(box, theme().background);
  painter.setPen(theme().selection);
  painter.drawRect(box.adjusted(0, 0, -1, -1));
  painter.setPen(theme().text);
  painter.drawText(box.adjusted(8, 0, -8, 0), Qt::AlignVCenter,
                   metrics.elidedText(text, Qt::ElideRight, wide - 16));
}

}  // namespace stowage::gui
