#include "gui/model/step_picture.h"

#include <algorithm>
#include <utility>

#include "gui/model/stall_cutter.h"
#include "report/alive_spans.h"

namespace stowage::gui {
namespace {

std::vector<TimeRange> again_in(const LaneRow& row) {
  std::vector<TimeRange> ranges;
  for (std::size_t i = 0; i < row.infos.size(); ++i) {
    if (!row.infos[i].again) continue;
    const bool goes_on = !ranges.empty() && ranges.back().end == row.spans.begin(i);
    if (!goes_on) ranges.push_back({row.spans.begin(i), 0});
    ranges.back().end = row.spans.end(i);
  }
  return ranges;
}

// Spans collected for one lane, then put into rows.
class LaneBuilder {
 public:
  explicit LaneBuilder(std::size_t spans) {
    begin_.reserve(spans);
    end_.reserve(spans);
    infos_.reserve(spans);
    bytes_.reserve(spans);
  }
  void add(Nanoseconds begin, Nanoseconds end, const SpanInfo& info, Bytes bytes) {
    begin_.push_back(begin);
    end_.push_back(std::max(begin, end));
    infos_.push_back(info);
    bytes_.push_back(bytes);
  }
  [[nodiscard]] std::size_t size() const { return begin_.size(); }
  // The spans from `first` on are what `stall` ns of waiting leave of one work.
  void add_cut(std::size_t first, const TimeRange& work, Nanoseconds stall) {
    for (std::size_t part = first; part < size(); ++part) {
      cuts_.push_back({static_cast<std::uint32_t>(part), work.begin, work.end, stall});
    }
  }

  // Rows in which no spans overlap; those that share the last one are cut where the next begins.
  [[nodiscard]] std::vector<LaneRow> rows() const {
    const std::vector<std::uint8_t> row = rows_of(begin_, end_);
    const std::size_t count =
        row.empty() ? 0 : std::size_t{*std::max_element(row.begin(), row.end())} + 1;
    const bool has_bytes =
        std::any_of(bytes_.begin(), bytes_.end(), [](Bytes bytes) { return bytes != 0; });
    std::vector<LaneRow> rows;
    for (std::size_t r = 0; r < count; ++r) {
      LaneRow made;
      std::vector<Nanoseconds> begin;
      std::vector<Nanoseconds> end;
      const auto spans = static_cast<std::size_t>(
          std::count(row.begin(), row.end(), static_cast<std::uint8_t>(r)));
      begin.reserve(spans);
      end.reserve(spans);
      made.infos.reserve(spans);
      auto cut = cuts_.begin();
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool is_cut = cut != cuts_.end() && cut->part == i;
        if (is_cut) ++cut;
        if (row[i] != r) continue;
        if (is_cut) {
          made.cuts.push_back(*std::prev(cut));
          made.cuts.back().part = static_cast<std::uint32_t>(begin.size());
        }
        if (!end.empty()) end.back() = std::min(end.back(), begin_[i]);
        begin.push_back(begin_[i]);
        end.push_back(end_[i]);
        made.infos.push_back(infos_[i]);
        if (has_bytes) made.bytes.push_back(bytes_[i]);
      }
      made.spans = SpanIndex(std::move(begin), std::move(end));
      made.again = again_in(made);
      rows.push_back(std::move(made));
    }
    return rows;
  }

 private:
  std::vector<Nanoseconds> begin_;
  std::vector<Nanoseconds> end_;
  std::vector<SpanInfo> infos_;
  std::vector<Bytes> bytes_;
  std::vector<CutWork> cuts_;  // `part`: of all spans
};

Selection::Kind kind_of(report::SpanKind kind) {
  switch (kind) {
    case report::SpanKind::op:
      return Selection::Kind::op;
    case report::SpanKind::kernel:
    case report::SpanKind::memcpy:
    case report::SpanKind::memset:
      return Selection::Kind::gpu;
    case report::SpanKind::sync:
      return Selection::Kind::event;
    case report::SpanKind::offload:
    case report::SpanKind::reload:
    case report::SpanKind::load:
    case report::SpanKind::store:
      return Selection::Kind::transfer;
    case report::SpanKind::stall:
      return Selection::Kind::stall;
    case report::SpanKind::update:
      return Selection::Kind::update;
  }
  return Selection::Kind::none;
}

// Cut where `stalls` lie.
std::vector<LaneRow> lane_of(const std::vector<report::Span>& spans, const StepRows* again,
                             const std::vector<report::Span>& stalls = {}) {
  LaneBuilder builder(spans.size());
  StallCutter cutter(stalls);
  for (const report::Span& span : spans) {
    SpanInfo info;
    info.kind = kind_of(span.kind);
    info.row = span.kind == report::SpanKind::sync ? span.event.value : span.row;
    info.name = span.name;
    info.again =
        again != nullptr && span.kind == report::SpanKind::op && again->is_again(OpId(span.row));
    const std::size_t first = builder.size();
    Nanoseconds stall = span.end - span.begin;
    cutter.cut(span.begin, span.end, [&](Nanoseconds begin, Nanoseconds end) {
      builder.add(begin, end, info, span.bytes);
      stall -= end - begin;
    });
    if (stall > 0) builder.add_cut(first, {span.begin, span.end}, stall);
  }
  return builder.rows();
}

// A layer, open once.
struct LayerPiece {
  Nanoseconds begin;
  Nanoseconds end;
  std::int32_t layer;
  bool again;
};

LaneRow layer_row(const Trace& trace, std::vector<LayerPiece>& pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const LayerPiece& a, const LayerPiece& b) { return a.begin < b.begin; });
  LaneRow row;
  std::vector<Nanoseconds> begin;
  std::vector<Nanoseconds> end;
  for (const LayerPiece& piece : pieces) {
    if (!end.empty()) end.back() = std::min(end.back(), piece.begin);
    begin.push_back(piece.begin);
    end.push_back(piece.end);
    row.infos.push_back({piece.layer, Selection::Kind::layer, piece.again,
                         trace.layers.name[static_cast<std::size_t>(piece.layer)]});
  }
  row.spans = SpanIndex(std::move(begin), std::move(end));
  row.again = again_in(row);
  return row;
}

// The layers that are open, forward and backward: the outermost, and those right inside them.
// Behind them the outermost that run again, which lie in whatever is open in backward.
class OpenLayers {
 public:
  void open(std::int32_t layer, Nanoseconds time, bool again) {
    open_.push_back({layer, time, again});
  }
  // Backward scopes need not nest: what is not open has no span.
  void close(std::int32_t layer, Nanoseconds time) {
    const auto at =
        std::find_if(open_.rbegin(), open_.rend(), [&](const Open& o) { return o.layer == layer; });
    if (at != open_.rend()) close(static_cast<std::size_t>(open_.rend() - at) - 1, time);
  }
  // Of a layer whose input has no gradient nothing says when its backward ends: with that of all.
  void close_all(Nanoseconds time) {
    while (!open_.empty()) close(open_.size() - 1, time);
  }
  [[nodiscard]] std::vector<LaneRow> rows(const Trace& trace) {
    std::vector<LaneRow> rows;
    for (std::vector<LayerPiece>& of_depth : pieces_) {
      if (!of_depth.empty()) rows.push_back(layer_row(trace, of_depth));
    }
    return rows;
  }

 private:
  struct Open {
    std::int32_t layer;
    Nanoseconds begin;
    bool again;
  };
  void close(std::size_t depth, Nanoseconds time) {
    const Open at = open_[depth];
    const auto place = open_.begin() + static_cast<std::ptrdiff_t>(depth);
    const bool is_inner =
        std::any_of(open_.begin(), place, [](const Open& above) { return above.again; });
    if (at.again) {
      if (!is_inner) pieces_[2].push_back({at.begin, time, at.layer, true});
    } else if (depth < 2) {
      pieces_[depth].push_back({at.begin, time, at.layer, false});
    }
    open_.erase(place);
  }

  std::vector<LayerPiece> pieces_[3];
  std::vector<Open> open_;
};

std::vector<LaneRow> layer_rows(const Trace& trace, const std::vector<Nanoseconds>& time,
                                const StepRows* again) {
  const auto is_again = [&](std::size_t e) {
    return again != nullptr && again->step().pass(EventId(e)) == simulator::Pass::recompute;
  };
  OpenLayers layers;
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    switch (trace.events.kind[e]) {
      case EventKind::layer_forward_begin:
      case EventKind::layer_backward_begin:
        layers.open(trace.events.ref[e], time[e], is_again(e));
        break;
      case EventKind::layer_forward_end:
      case EventKind::layer_backward_end:
        layers.close(trace.events.ref[e], time[e]);
        break;
      case EventKind::backward_end:
        layers.close_all(time[e]);
        break;
      default:
        break;
    }
  }
  // Older recordings do not say where backward ends.
  if (trace.events.size() > 0) layers.close_all(time[trace.events.size() - 1]);
  return layers.rows(trace);
}

// Where nothing moves, bytes hang on the order of the events alone.
MemoryView planned_memory(const Simulated& simulated, const StepPicturePtr& recorded,
                          const std::vector<Nanoseconds>& time) {
  if (!recorded || simulated.rows || !simulated.schedule.instructions.empty()) {
    const Trace& trace = simulated.step_trace();
    return memory_of(trace, report::AliveSpans(trace, simulated.schedule), time,
                     simulated.rows.get());
  }
  return at_times(recorded->memory, time);
}

void say_why_empty(const Trace& trace, bool planned, LaneView& lane) {
  if (!lane.rows.empty()) return;
  switch (lane.kind) {
    case LaneKind::layers:
      lane.why_empty = "no layer of the model announced itself when the step was recorded";
      return;
    case LaneKind::launch:
      lane.why_empty = trace.env.device == "cuda"
                           ? "no device times in this trace: record it with CUPTI to see launches"
                           : "on the CPU device ops are the compute itself: nothing is launched";
      return;
    case LaneKind::compute:
      lane.why_empty = "the step has no ops";
      return;
    case LaneKind::d2h:
      lane.why_empty = planned ? "nothing leaves the device: plan for a budget, or offload a row"
                               : "the recorded step copied nothing to the host";
      return;
    case LaneKind::h2d:
      lane.why_empty = planned ? "nothing comes back, since nothing left"
                               : "the recorded step copied nothing to the device";
      return;
    case LaneKind::stalls:
      lane.why_empty = planned ? "compute never waits for a copy"
                               : "the recorded step has no planned copies to wait for";
      return;
    case LaneKind::updates:  // not there where it is empty
      return;
  }
}

// A span for each group.
std::vector<report::Span> grouped(const std::vector<report::Span>& stalls,
                                  const StallWaits& waits) {
  std::vector<report::Span> spans;
  for (const StallGroup& group : waits.groups) {
    report::Span& span = spans.emplace_back();
    Bytes bytes = 0;
    for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
      const report::Span& each = stalls[static_cast<std::size_t>(i)];
      bytes += each.bytes;
      if (each.row == group.longest) span = each;
    }
    span.begin = group.at.begin;
    span.end = group.at.end;
    span.bytes = bytes;
  }
  return spans;
}

std::shared_ptr<StepPicture> view_of(const Trace& trace, const report::Timeline& timeline,
                                     StallWaits waits, MemoryView memory, Source source,
                                     const StepPicturePtr& recorded, const StepRows* again) {
  auto view = std::make_shared<StepPicture>();
  view->memory = std::move(memory);
  view->memory.active = counter_of(view->memory, timeline.active);
  view->memory.reserved = counter_of(view->memory, timeline.reserved);
  view->waits = std::move(waits);
  view->source = source;
  view->end = timeline.end;
  view->phases = timeline.phases;
  const auto add = [&](LaneKind kind, std::vector<LaneRow> rows) {
    LaneView& lane = view->lanes.emplace_back();
    lane.kind = kind;
    lane.rows = std::move(rows);
    const bool has_it = recorded && kind < LaneKind::updates;
    if (has_it && lane.rows == recorded->lane(kind).rows) lane.rows = recorded->lane(kind).rows;
    say_why_empty(trace, source != Source::measured, lane);
  };
  const std::vector<Nanoseconds>& time = timeline.time;
  add(LaneKind::layers, time.empty() ? std::vector<LaneRow>() : layer_rows(trace, time, again));
  add(LaneKind::launch, lane_of(timeline.lane(report::Lane::launch), again));
  add(LaneKind::compute,
      lane_of(timeline.lane(report::Lane::compute), again, timeline.lane(report::Lane::stalls)));
  add(LaneKind::d2h, lane_of(timeline.lane(report::Lane::d2h), again));
  add(LaneKind::h2d, lane_of(timeline.lane(report::Lane::h2d), again));
  add(LaneKind::stalls, lane_of(grouped(timeline.lane(report::Lane::stalls), view->waits), again));
  const std::vector<report::Span>& updates = timeline.lane(report::Lane::updates);
  if (!updates.empty()) add(LaneKind::updates, lane_of(updates, again));
  return view;
}

Bytes moved(const LaneView& lane, const TimeRange& range) {
  Bytes sum = 0;
  for (const LaneRow& row : lane.rows) {
    const auto count = row.spans.size();
    for (std::size_t i = 0; i < count && row.spans.begin(i) < range.end; ++i) {
      const Nanoseconds length = row.spans.end(i) - row.spans.begin(i);
      const Nanoseconds inside =
          std::min(row.spans.end(i), range.end) - std::max(row.spans.begin(i), range.begin);
      if (inside <= 0 || length == 0) continue;
      sum += static_cast<Bytes>(Wide{row.bytes_of(i)} * inside / length);
    }
  }
  return sum;
}

// Time that a span of any row covers.
Nanoseconds busy(const LaneView& lane, const TimeRange& range) {
  if (lane.rows.empty()) return 0;
  if (lane.rows.size() == 1) return lane.rows[0].spans.covered(range.begin, range.end);
  std::vector<TimeRange> spans;
  for (const LaneRow& row : lane.rows) {
    for (std::size_t i = 0; i < row.spans.size(); ++i) {
      const TimeRange inside{std::max(row.spans.begin(i), range.begin),
                             std::min(row.spans.end(i), range.end)};
      if (inside.begin < inside.end) spans.push_back(inside);
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const TimeRange& a, const TimeRange& b) { return a.begin < b.begin; });
  Nanoseconds sum = 0;
  Nanoseconds until = range.begin;
  for (const TimeRange& each : spans) {
    sum += std::max<Nanoseconds>(0, each.end - std::max(until, each.begin));
    until = std::max(until, each.end);
  }
  return sum;
}

}  // namespace

const CutWork* LaneRow::cut_of(std::size_t span) const {
  const auto at = std::lower_bound(cuts.begin(), cuts.end(), span,
                                   [](const CutWork& a, std::size_t b) { return a.part < b; });
  return at != cuts.end() && at->part == span ? &*at : nullptr;
}

StepPicturePtr planned_view(const Simulated& simulated, const StepPicturePtr& recorded) {
  const Trace& trace = simulated.step_trace();
  const report::Timeline timeline =
      report::simulated_timeline(trace, simulated.schedule, simulated.result, simulated.detail);
  auto view = view_of(
      trace, timeline, stall_waits(*simulated.index, simulated.result, simulated.detail),
      planned_memory(simulated, recorded, timeline.time),
      simulated.trace->machine == MachineKind::recorded ? Source::predicted : Source::assumed,
      recorded, simulated.rows.get());
  if (simulated.schedule.host_bytes > 0) {
    view->host = {report::host_use(simulated.schedule, simulated.detail),
                  simulated.schedule.host_bytes, simulated.plan().budget.host};
  }
  return view;
}

StepPicturePtr recorded_view(const TraceData& data) {
  const report::Timeline timeline = report::recorded_timeline(data.trace);
  return view_of(data.trace, timeline, {},
                 memory_of(data.trace, report::AliveSpans(data.trace), timeline.time),
                 Source::measured, nullptr, nullptr);
}

bool same_curve(const StepPicture& a, const StepPicture& b) {
  const std::size_t points = a.memory.total.size();
  if (a.end != b.end || points != b.memory.total.size()) return false;
  for (std::size_t i = 0; i < points; ++i) {
    if (a.memory.total[i] != b.memory.total[i]) return false;
  }
  return true;
}

RangeFigures measure(const StepPicture& view, const TimeRange& range) {
  RangeFigures figures;
  figures.duration = range.duration();
  figures.compute = busy(view.lane(LaneKind::compute), range);
  figures.stall = view.waits.covered(range);
  figures.d2h = moved(view.lane(LaneKind::d2h), range);
  figures.h2d = moved(view.lane(LaneKind::h2d), range);
  const MemoryView& memory = view.memory;
  if (memory.empty()) return figures;
  const MemoryView::Range points =
      memory.points(static_cast<double>(range.begin), static_cast<double>(range.end));
  const MinMaxPyramid::Extent extent = memory.total.extent(points.first, points.last);
  figures.memory_min = extent.min;
  figures.memory_max = extent.max;
  figures.memory_begin = memory.total[points.first];
  figures.memory_end = memory.total[points.last - 1];
  return figures;
}

double gigabytes_per_second(Bytes bytes, Nanoseconds time) {
  return time > 0 ? static_cast<double>(bytes) / static_cast<double>(time) : 0;
}

}  // namespace stowage::gui
