// WorkClock: a clock that stands still inside spans that are somebody else's work.
#pragma once

#include <vector>

#include "profiler/assembly/raw_pass.h"

namespace stowage::profiler {

class WorkClock {
 public:
  // Spans in any order; they may overlap. Cost: O(n log n).
  explicit WorkClock(std::vector<RawSpan> left_out);

  // `time` less what was left out before it. Never decreases. Cost: O(log spans).
  [[nodiscard]] std::int64_t at(std::int64_t time) const;

 private:
  std::vector<RawSpan> spans_;       // in order, not overlapping
  std::vector<Nanoseconds> before_;  // left out ahead of each
};

}  // namespace stowage::profiler
