#include "profiler/assembly/event_times.h"

#include <algorithm>

namespace stowage::profiler {

namespace {

Nanoseconds median(std::vector<Nanoseconds>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<Nanoseconds> event_times(const RawPass& structure,
                                     const std::vector<std::vector<std::int64_t>>& more_times,
                                     Nanoseconds clean_step_ns) {
  const std::size_t count = structure.events.size();
  std::vector<Nanoseconds> times(count, 0);
  std::vector<Nanoseconds> gaps;
  for (std::size_t i = 1; i < count; ++i) {
    gaps.assign(1, structure.events[i].time_ns - structure.events[i - 1].time_ns);
    for (const auto& more : more_times) {
      if (more.size() == count) gaps.push_back(more[i] - more[i - 1]);
    }
    times[i] = times[i - 1] + std::max<Nanoseconds>(0, median(gaps));
  }
  const Nanoseconds observed = count == 0 ? 0 : times.back();
  if (observed <= 0 || clean_step_ns <= 0) return times;
  for (Nanoseconds& time : times) {
    time = static_cast<Nanoseconds>(Wide{time} * clean_step_ns / observed);
  }
  return times;
}

}  // namespace stowage::profiler
