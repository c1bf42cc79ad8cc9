// A step as lanes over time: what the launch thread, the compute stream, the two copy lanes and the
// host's updates did, and where compute stalled. A value without strings or pointers, 72 bytes a
// span, for traces of a million events: what a span is about are rows of the tables of the trace,
// the schedule and the replay that it was made from; label_of() makes its text when it is shown.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "report/moment.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::report {

enum class Lane : std::uint8_t { launch, compute, d2h, h2d, stalls, updates };
inline constexpr std::size_t kLanes = 6;
[[nodiscard]] const char* name_of(Lane value);
// "CPU launch", "Copy out (D2H)"; the window and the pictures have the same.
[[nodiscard]] const char* title_of(Lane lane);

enum class SpanKind : std::uint8_t {
  op,       // an outermost op: row of Trace::ops
  kernel,   // row of Trace::gpu
  memcpy,   // row of Trace::gpu
  memset,   // row of Trace::gpu
  sync,     // the launch thread stands until the device is done: row of Trace::syncs
  offload,  // row of ReplayDetail::transfers, as the next three
  reload,
  load,    // of what is no saved tensor
  store,   // likewise
  stall,   // row of ReplayResult::stalls
  update,  // of a parameter on the host: row of ReplayDetail::host_updates
};
[[nodiscard]] const char* name_of(SpanKind value);

// Times are ns since step begin. Fields that say nothing of the span are none (-1) or 0.
struct Span {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;    // >= begin
  Bytes bytes = 0;        // moved, updated with; of a stall: that it waits for
  std::int32_t row = -1;  // which table: see SpanKind
  SpanKind kind = SpanKind::op;
  bool on_compute = false;  // a copy that the compute stream makes itself
  StringId name;            // op, kernel, the site of a copy, the layer of model state
  LayerId layer;
  OpId op;
  EventId event;      // op_begin of an op; behind which a kernel was launched; where compute stalls
  StorageId storage;  // that is moved, updated or waited for
  StayId stay;        // whose copy it is, or that is waited for; of an update the gradient's
  bool is_update = false;  // of a stall: it is an update on the host that is waited for
  // Of copies and stalls.
  bool is_store = false;                               // the copy out, else the load
  const simulator::TenantKind* tenant_kind = nullptr;  // of what is moved
};

// Spans of a lane are in order of begin. They do not overlap, but kernels of several streams may,
// and a copy on the compute stream lies in its copy lane as well as over the others there.
struct Timeline {
  std::array<std::vector<Span>, kLanes> lanes;
  Nanoseconds end = 0;  // of the step
  bool is_simulated = false;
  // The memory curve: time of each event and bytes after it, as MemoryCurve means them. `active`
  // and `reserved` are empty where they are not known, and -1 ahead of the first that is recorded.
  std::vector<Nanoseconds> time;
  std::vector<Bytes> requested;
  std::vector<Bytes> active;
  std::vector<Bytes> reserved;
  std::vector<PhaseSpan> phases;

  [[nodiscard]] const std::vector<Span>& lane(Lane which) const {
    return lanes[static_cast<std::size_t>(which)];
  }
};

// The step as it was recorded, on the clean step's scale. With device times: outermost ops and
// syncs in `launch`, kernels and memsets in `compute`, copies by their direction (within the
// device: `compute`); `time` is the launch thread's. Without: outermost ops in `compute`, `launch`
// is empty. No stalls. Cost: O(trace).
[[nodiscard]] Timeline recorded_timeline(const Trace& trace);

// The planned step as replay() says it goes: outermost ops on the compute stream (what they wait
// for included) and, with device times, on the launch thread; transfers; stalls; updates on the
// host. `time` is the compute stream's. All four must belong together. Cost: O(trace +
// instructions).
[[nodiscard]] Timeline simulated_timeline(const Trace& trace, const simulator::Schedule& schedule,
                                          const simulator::ReplayResult& result,
                                          const simulator::ReplayDetail& detail);

// "aten::mm", "reload of layers.3.mlp#2", "load of parameter of head", "waits for reload of ..",
// "update of parameter of head", "waits for the host's update of parameter of head".
[[nodiscard]] std::string label_of(const Trace& trace, const Span& span);

}  // namespace stowage::report
