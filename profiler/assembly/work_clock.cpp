#include "profiler/assembly/work_clock.h"

#include <algorithm>
#include <cstddef>

namespace stowage::profiler {

WorkClock::WorkClock(std::vector<RawSpan> left_out) {
  std::sort(left_out.begin(), left_out.end(),
            [](const RawSpan& a, const RawSpan& b) { return a.begin_ns < b.begin_ns; });
  Nanoseconds before = 0;
  for (const RawSpan& span : left_out) {
    const std::int64_t begin =
        spans_.empty() ? span.begin_ns : std::max(span.begin_ns, spans_.back().end_ns);
    if (span.end_ns <= begin) continue;
    spans_.push_back({begin, span.end_ns});
    before_.push_back(before);
    before += span.end_ns - begin;
  }
}

std::int64_t WorkClock::at(std::int64_t time) const {
  const auto after = std::upper_bound(
      spans_.begin(), spans_.end(), time,
      [](std::int64_t value, const RawSpan& span) { return value < span.begin_ns; });
  if (after == spans_.begin()) return time;
  const auto row = static_cast<std::size_t>(after - spans_.begin()) - 1;
  return time - before_[row] - (std::min(time, spans_[row].end_ns) - spans_[row].begin_ns);
}

}  // namespace stowage::profiler
