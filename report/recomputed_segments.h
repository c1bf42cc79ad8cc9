// What a step computes again: segment by segment, what that costs and what it frees.
#pragma once

#include <string>
#include <vector>

#include "simulator/step/step.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::report {

struct RecomputedSegment {
  std::string name;  // of a chain of ops: the site that backward asks for first
  bool by_ops = false;
  // Bytes of storages of the device that it makes in forward and would have saved: they are gone
  // until it runs again. What it shares with others that save it may stay for their sake. What a
  // segment within it gives up is that one's.
  Bytes freed = 0;
  Nanoseconds time = 0;  // work of the run
  // Of a chain: the layer that saves what its trigger asks for; else the segment's own name.
  std::string layer{};
  Bytes freed_at_peak = 0;  // of `freed`: what is gone at the peak
  EventId saved_at;         // in forward: where it saves first what it gives up
};

// In order of forward. `peak`: an event of the step, such as ReplayResult::peak_event; none:
// nothing is gone there. Cost: O(saved tensors of segments + events).
[[nodiscard]] std::vector<RecomputedSegment> recomputed_segments(const simulator::Step& step,
                                                                 EventId peak = {});

// What recompute buys in a layer, and what it costs there.
struct RecomputedLayer {
  std::string layer;
  bool by_ops = false;
  Bytes freed_at_peak = 0;
  Bytes freed = 0;
  Nanoseconds time = 0;
};

// Segments of one layer together, those by ops and those by layers apart; in order of `saved_at`.
[[nodiscard]] std::vector<RecomputedLayer> recomputed_layers(
    const std::vector<RecomputedSegment>& segments);

}  // namespace stowage::report
