// What lies on the device at any place of the recorded or of a planned step: by storage, by class,
// by layer. The sums are equal: over storages, over classes, over layers, and the requested bytes
// there.
#pragma once

#include <cstdint>
#include <vector>

#include "report/alive_spans.h"
#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::report {

struct AliveStorage {
  StorageId storage;
  // Its first pack, or none; of a reloaded copy the first that the copy serves.
  SavedId saved;
  Bytes bytes = 0;  // of the copy, when it is one
  Holding holding = Holding::original;
};

struct AliveClass {
  StorageClass storage_class = StorageClass::other;
  std::int64_t storages = 0;
  Bytes bytes = 0;
};

// By Trace::storages.layer: the layer that made it or, of what is older than the step, uses it
// first. None: outside any.
struct AliveLayer {
  LayerId layer;
  std::int64_t storages = 0;
  Bytes bytes = 0;
};

struct Alive {
  EventId event;
  Bytes bytes = 0;                     // the sum
  std::vector<AliveStorage> storages;  // largest first, then by row
  std::vector<AliveClass> classes;     // largest first
  std::vector<AliveLayer> layers;      // largest first
};

// Refers to the trace, which must outlive it; the schedule is only read. Cost to build: that of
// AliveSpans.
class AliveIndex {
 public:
  // An empty schedule, as is the default, gives the recorded step.
  explicit AliveIndex(const Trace& trace, const simulator::Schedule& schedule = {});

  // At an event: where the bytes are highest of the event itself and the instructions there, as
  // ReplayDetail::requested counts. Precondition: the trace has the event. Cost: O(k log S) for k
  // that are alive among S.
  [[nodiscard]] Alive at(EventId event) const;
  // Where the requested bytes are highest for the first time. Precondition: there are events.
  [[nodiscard]] Alive at_peak() const;

  [[nodiscard]] const AliveSpans& spans() const { return spans_; }

 private:
  [[nodiscard]] Alive at_position(StepPosition position) const;

  const Trace& trace_;
  AliveSpans spans_;
  std::vector<SavedId> first_saved_;  // by storage
};

// The last event at or ahead of `time`, the first one when there is none; `event_time` is
// Trace::events.time or ReplayDetail::time. Precondition: not empty. O(log events).
[[nodiscard]] EventId event_at(const std::vector<Nanoseconds>& event_time, Nanoseconds time);

// The first pack of each storage, by row of Trace::storages; none where it is never saved.
[[nodiscard]] std::vector<SavedId> first_packs(const Trace& trace);

}  // namespace stowage::report
