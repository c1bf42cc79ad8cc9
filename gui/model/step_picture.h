// A step as it is painted: lanes of spans and the memory curve by class, indexed for any zoom. Made
// in the background, immutable. Without strings: names are looked up when something is shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/memory_view.h"
#include "gui/model/shared_column.h"
#include "gui/model/simulated.h"
#include "gui/model/span_index.h"
#include "gui/model/stall_waits.h"
#include "gui/model/view_state.h"
#include "report/host_use.h"
#include "report/timeline.h"
#include "traces/trace.h"

namespace stowage::gui {

// What the numbers are: they look different wherever they are shown.
enum class Source : std::uint8_t {
  measured,   // the step as it was recorded
  predicted,  // a replay on the recorded machine
  assumed,    // a replay on a machine that nobody measured
};

enum class LaneKind : std::uint8_t { layers, launch, compute, d2h, h2d, stalls, updates };

// What one span is about.
struct SpanInfo {
  std::int32_t row = -1;  // of the table that `kind` names
  Selection::Kind kind = Selection::Kind::none;
  bool again = false;  // it runs again in backward: recompute
  StringId name;       // op, kernel, site, layer
  bool operator==(const SpanInfo&) const = default;
};

// What a stall cuts: `part`, one of the spans of a row, belongs to work that begins and ends here.
struct CutWork {
  std::uint32_t part = 0;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  Nanoseconds stall = 0;  // of that
  bool operator==(const CutWork&) const = default;
};

// Spans that do not overlap; a lane with overlapping ones has several rows. 29 bytes a span, 37 of
// one that is about bytes.
struct LaneRow {
  SpanIndex spans;
  std::vector<SpanInfo> infos;
  std::vector<Bytes> bytes;   // moved, waited for; empty: none of the spans is about bytes
  std::vector<CutWork> cuts;  // by `part`
  // Where spans that run again are, in order; those without a gap between them are one.
  std::vector<TimeRange> again;
  [[nodiscard]] Bytes bytes_of(std::size_t span) const { return bytes.empty() ? 0 : bytes[span]; }
  // Null: no stall cuts what the span belongs to. O(log cuts).
  [[nodiscard]] const CutWork* cut_of(std::size_t span) const;
  bool operator==(const LaneRow&) const = default;
};

struct LaneView {
  LaneKind kind = LaneKind::compute;
  SharedColumn<LaneRow> rows;  // none: the lane is empty
  std::string why_empty;       // then: in words, and what to do about it
};

// What the plan has on the host.
struct HostView {
  report::HostUse use;          // no points: nothing is there
  Bytes arena = 0;              // what the plan takes for it, all the time
  std::optional<Bytes> budget;  // of the plan, on that
};

struct StepPicture {
  Source source = Source::measured;
  Nanoseconds end = 0;
  // In the order of LaneKind, each once; the last one where the host updates.
  // A span of the stalls is a group of `waits`, as row the longest of it.
  std::vector<LaneView> lanes;
  StallWaits waits;
  std::vector<report::PhaseSpan> phases;
  MemoryView memory;
  HostView host;

  [[nodiscard]] const LaneView& lane(LaneKind kind) const {
    return lanes[static_cast<std::size_t>(kind)];
  }
};
using StepPicturePtr = std::shared_ptr<const StepPicture>;

// The planned step, as replayed; in the compute lane stalls are gaps, and what one cuts is several
// spans of one row. What is the same as in `recorded` (null: not there) is shared with it: where
// nothing moves the memory curve, but for its times when they differ, and lanes whose spans are all
// the same. O(trace + instructions).
[[nodiscard]] StepPicturePtr planned_view(const Simulated& simulated,
                                          const StepPicturePtr& recorded = nullptr);
// The recorded step.
[[nodiscard]] StepPicturePtr recorded_view(const TraceData& data);

// The same requested bytes at each point, in a step of the same length. O(points).
[[nodiscard]] bool same_curve(const StepPicture& a, const StepPicture& b);

// What lies in a range of time.
struct RangeFigures {
  Nanoseconds duration = 0;
  Nanoseconds compute = 0;  // busy: something runs, on whichever stream
  Nanoseconds stall = 0;
  Bytes d2h = 0;  // moved; of a copy that is cut, its share
  Bytes h2d = 0;
  Bytes memory_min = 0;
  Bytes memory_max = 0;
  Bytes memory_begin = 0;
  Bytes memory_end = 0;
};
// O(log spans + transfers + stalls); where compute has several rows, O(spans log spans).
[[nodiscard]] RangeFigures measure(const StepPicture& view, const TimeRange& range);

// GB/s, 1000-based; 0 for no time.
[[nodiscard]] double gigabytes_per_second(Bytes bytes, Nanoseconds time);

}  // namespace stowage::gui
