// Memory over time, as a value for everything that draws it.
#pragma once

#include <vector>

#include "simulator/replay/replay.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::report {

// A step function: bytes[i] holds from time[i] until time[i + 1]; the last one until `end`.
// Times never decrease. Points at the same time are all seen.
struct MemoryCurve {
  std::vector<Nanoseconds> time;
  std::vector<Bytes> bytes;
  Nanoseconds end = 0;
};

// The maximum over each of `columns` equal spans of [time.front(), end]. Cost: O(points + columns).
[[nodiscard]] std::vector<Bytes> column_maxima(const MemoryCurve& curve, int columns);

// Which of `columns` such spans a time lies in, and the last one that a stretch which ends before
// it still touches. Precondition: the curve has points.
[[nodiscard]] std::size_t column_of(Nanoseconds time, const MemoryCurve& curve,
                                    std::size_t columns);
[[nodiscard]] std::size_t last_column_of(Nanoseconds time, const MemoryCurve& curve,
                                         std::size_t columns);

// Requested bytes on device 0 after each event: an alloc counts at its event, a free from its own.
[[nodiscard]] std::vector<Bytes> requested_after(const Trace& trace);

// Requested bytes over the planned step's time.
[[nodiscard]] MemoryCurve curve_of(const simulator::ReplayDetail& detail, Nanoseconds step);

}  // namespace stowage::report
