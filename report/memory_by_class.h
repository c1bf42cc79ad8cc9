// The memory curve taken apart by the class of the storages: what a stacked drawing shows.
#pragma once

#include <vector>

#include "report/alive_spans.h"
#include "traces/trace.h"

namespace stowage::report {

// A step function over events: bytes[c][i] of class classes[c] are on the device from event[i] on,
// until event[i + 1]. Points are where something changes; the first is event 0. At a point that has
// instructions the bytes are those of the moment when the sum is highest, so sums are the values of
// ReplayDetail::requested.
struct MemoryByClass {
  std::vector<StorageClass> classes;      // that occur, in the order of the enum
  std::vector<EventId> event;             // increasing
  std::vector<std::vector<Bytes>> bytes;  // by class, then by point
  [[nodiscard]] std::size_t size() const { return event.size(); }
};

// Of the recorded step when `spans` is. The time of a point is the one of its event, in
// Trace::events or in ReplayDetail. Cost: O(spans log spans + points * classes).
[[nodiscard]] MemoryByClass memory_by_class(const Trace& trace, const AliveSpans& spans);

}  // namespace stowage::report
