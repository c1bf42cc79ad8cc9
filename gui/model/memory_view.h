// The memory curve of a step by class, as it is painted.
#pragma once

#include <cstddef>
#include <vector>

#include "gui/model/min_max_pyramid.h"
#include "gui/model/shared_column.h"
#include "gui/model/step_rows.h"
#include "report/alive_spans.h"
#include "traces/trace.h"

namespace stowage::gui {

// 22 bytes a point and 8 a class. Copies share it; of a step in which nothing moves all but the
// times is that of the recorded one.
struct MemoryView {
  std::vector<StorageClass> classes;  // that occur, lowest in the stack first
  SharedColumn<EventId> event;        // of each point
  SharedColumn<Nanoseconds> time;     // of each point, never decreasing
  // By band, then by point: the classes, and behind them what runs again has made, if anything
  // does; that is then in no class.
  std::vector<SharedColumn<Bytes>> bytes;
  MinMaxPyramid total;      // requested bytes by point
  std::size_t peak_at = 0;  // point
  // What the allocator has handed out and holds there; empty where that is not known.
  MinMaxPyramid active;
  MinMaxPyramid reserved;
  [[nodiscard]] bool empty() const { return time.empty(); }
  // The band of what was made again; classes.size() is its number.
  [[nodiscard]] bool has_again() const { return bytes.size() > classes.size(); }
  [[nodiscard]] Bytes peak() const { return empty() ? 0 : total[peak_at]; }
  // The points that are seen in [begin, end): the one that holds at `begin`, and all that begin
  // ahead of `end`. first == last only when there are no points. O(log points).
  struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  [[nodiscard]] Range points(double begin, double end) const;
};

// `time`: of each event, in Trace::events or in ReplayDetail; `again`: of a step in which something
// runs again. Cost: that of memory_by_class().
[[nodiscard]] MemoryView memory_of(const Trace& trace, const report::AliveSpans& spans,
                                   const std::vector<Nanoseconds>& time,
                                   const StepRows* again = nullptr);
// The counters at the view's points; `by_event` may be empty, and below 0 ahead of the first that
// is known. O(points).
[[nodiscard]] MinMaxPyramid counter_of(const MemoryView& view, const std::vector<Bytes>& by_event);
// The same bytes at other times. All but the times is shared, and they as well where none differs.
// O(points).
[[nodiscard]] MemoryView at_times(const MemoryView& view, const std::vector<Nanoseconds>& time);

}  // namespace stowage::gui
