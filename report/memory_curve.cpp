#include "report/memory_curve.h"

#include <algorithm>
#include <cmath>

namespace stowage::report {
namespace {

double position_of(Nanoseconds time, const MemoryCurve& curve, std::size_t columns) {
  const Nanoseconds first = curve.time.front();
  const double span = static_cast<double>(std::max<Nanoseconds>(curve.end - first, 1));
  return std::max(static_cast<double>(time - first) / span * static_cast<double>(columns), 0.0);
}

}  // namespace

std::size_t column_of(Nanoseconds time, const MemoryCurve& curve, std::size_t columns) {
  return std::min(static_cast<std::size_t>(position_of(time, curve, columns)), columns - 1);
}

std::size_t last_column_of(Nanoseconds time, const MemoryCurve& curve, std::size_t columns) {
  const double end = std::ceil(position_of(time, curve, columns));
  return std::min(static_cast<std::size_t>(std::max(end - 1, 0.0)), columns - 1);
}

std::vector<Bytes> column_maxima(const MemoryCurve& curve, int columns) {
  const auto n = static_cast<std::size_t>(std::max(columns, 1));
  std::vector<Bytes> maxima(n, 0);
  for (std::size_t i = 0; i < curve.time.size(); ++i) {
    const Nanoseconds until = i + 1 < curve.time.size() ? curve.time[i + 1] : curve.end;
    const std::size_t first = column_of(curve.time[i], curve, n);
    const std::size_t last = std::max(first, last_column_of(until, curve, n));
    for (std::size_t c = first; c <= last; ++c) maxima[c] = std::max(maxima[c], curve.bytes[i]);
  }
  return maxima;
}

std::vector<Bytes> requested_after(const Trace& trace) {
  std::vector<Bytes> requested(trace.events.size(), 0);
  Bytes now = 0;
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    if (trace.storages.device[i] == 0 && !trace.storages.alloc_event[i].valid()) {
      now += trace.storages.bytes[i];
    }
  }
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const EventKind kind = trace.events.kind[e];
    if (kind == EventKind::alloc || kind == EventKind::free) {
      const auto storage = static_cast<std::size_t>(trace.events.ref[e]);
      const Bytes bytes = trace.storages.device[storage] == 0 ? trace.storages.bytes[storage] : 0;
      now += kind == EventKind::alloc ? bytes : -bytes;
    }
    requested[e] = now;
  }
  return requested;
}

MemoryCurve curve_of(const simulator::ReplayDetail& detail, Nanoseconds step) {
  return {detail.time, detail.requested, step};
}

}  // namespace stowage::report
