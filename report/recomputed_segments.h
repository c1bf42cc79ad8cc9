// What a step computes again: segment by segment, what that costs and what it frees.
#pragma once

#include <string>
#include <vector>

#include "simulator/step/step.h"
#include "traces/units.h"

namespace stowage::report {

struct RecomputedSegment {
  std::string name;  // of a chain of ops: the site that backward asks for first
  bool by_ops = false;
  // Bytes of storages of the device that it makes in forward and would have saved: they are gone
  // until it runs again. What it shares with others that save it may stay for their sake.
  Bytes freed = 0;
  Nanoseconds time = 0;  // work of the run
};

// In order of forward. Cost: O(saved tensors of segments + events).
[[nodiscard]] std::vector<RecomputedSegment> recomputed_segments(const simulator::Step& step);

}  // namespace stowage::report
