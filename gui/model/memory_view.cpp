#include "gui/model/memory_view.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "report/memory_by_class.h"

namespace stowage::gui {
namespace {

std::vector<Nanoseconds> times_of(const SharedColumn<EventId>& points,
                                  const std::vector<Nanoseconds>& time) {
  std::vector<Nanoseconds> times;
  times.reserve(points.size());
  Nanoseconds latest = 0;
  for (const EventId event : points) {
    times.push_back(latest = std::max(latest, time[event.index()]));
  }
  return times;
}

// Takes what runs again has made from the classes, and puts it behind them.
void take_again(const Trace& trace, const report::AliveSpans& spans, const StepRows& again,
                report::MemoryByClass& by_class) {
  std::vector<std::vector<Bytes>> changes(by_class.classes.size());  // by class, then by position
  const auto positions = static_cast<std::size_t>(spans.last_at(trace.events.size() - 1)) + 2;
  for (const report::AliveSpan& span : spans.all()) {
    if (again.step().pass(span.storage) != simulator::Pass::recompute) continue;
    const auto of = std::find(by_class.classes.begin(), by_class.classes.end(),
                              trace.storages.storage_class[span.storage.index()]);
    std::vector<Bytes>& change = changes[static_cast<std::size_t>(of - by_class.classes.begin())];
    change.resize(positions, 0);
    change[static_cast<std::size_t>(std::max(span.begin, 0))] += span.bytes;
    if (span.end != report::kNever) change[static_cast<std::size_t>(span.end)] -= span.bytes;
  }
  std::vector<Bytes> made(by_class.size(), 0);
  for (std::size_t c = 0; c < changes.size(); ++c) {
    if (changes[c].empty()) continue;
    std::partial_sum(changes[c].begin(), changes[c].end(), changes[c].begin());
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Bytes there = changes[c][static_cast<std::size_t>(spans.highest_at(by_class.event[i]))];
      by_class.bytes[c][i] -= there;
      made[i] += there;
    }
  }
  by_class.bytes.push_back(std::move(made));
}

}  // namespace

MemoryView::Range MemoryView::points(double begin, double end) const {
  const auto from = [&](double t) {
    return static_cast<std::size_t>(
        std::partition_point(time.begin(), time.end(),
                             [&](Nanoseconds at) { return static_cast<double>(at) < t; }) -
        time.begin());
  };
  if (time.empty()) return {};
  std::size_t first = from(begin);
  // What holds at `begin` began ahead of it, unless a point is exactly there.
  if (first > 0 && (first == time.size() || static_cast<double>(time[first]) > begin)) --first;
  return {first, std::max(from(end), first + 1)};
}

MemoryView memory_of(const Trace& trace, const report::AliveSpans& spans,
                     const std::vector<Nanoseconds>& time, const StepRows* again) {
  report::MemoryByClass by_class = report::memory_by_class(trace, spans);
  if (again != nullptr && by_class.size() > 0) take_again(trace, spans, *again, by_class);
  MemoryView view;
  view.classes = std::move(by_class.classes);
  view.event = std::move(by_class.event);
  view.time = times_of(view.event, time);
  std::vector<Bytes> total(view.event.size(), 0);
  for (std::vector<Bytes>& bytes : by_class.bytes) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += bytes[i];
    view.bytes.emplace_back(std::move(bytes));
  }
  view.total = MinMaxPyramid(std::move(total));
  if (!view.empty()) view.peak_at = view.total.extent(0, view.total.size()).max_at;
  return view;
}

MinMaxPyramid counter_of(const MemoryView& view, const std::vector<Bytes>& by_event) {
  if (by_event.empty() || view.empty()) return {};
  std::vector<Bytes> bytes;
  bytes.reserve(view.event.size());
  for (const EventId event : view.event) {
    bytes.push_back(std::max<Bytes>(0, by_event[event.index()]));
  }
  return MinMaxPyramid(std::move(bytes));
}

MemoryView at_times(const MemoryView& view, const std::vector<Nanoseconds>& time) {
  MemoryView made = view;
  SharedColumn<Nanoseconds> times = times_of(view.event, time);
  if (times != made.time) made.time = std::move(times);
  return made;
}

}  // namespace stowage::gui
