// The step that a recording becomes when segments of it run again in backward.
#pragma once

#include <vector>

#include "simulator/step/segments.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// The rows of a segment in such a step.
struct SegmentRows {
  std::string name;
  LayerId layer;
  std::int32_t call = 0;
  std::int32_t calls = 1;  // 0 = a chain
  // What it is given, a saved tensor each but for undefined ones: packed in forward, unpacked where
  // it runs again. In order.
  std::vector<SavedId> inputs;
  // What it gives up in forward, which has no unpacks; and the same again, as many as run again.
  // Number k of the one is number k of the other.
  std::vector<SavedId> saved;
  std::vector<SavedId> again;
  std::vector<OpId> ops;      // of a chain: in forward, in order
  std::vector<OpId> made_by;  // likewise: behind which of them each of `saved` is there again
  EventId run_begin;          // recompute_begin, recompute_end
  EventId run_end;

  [[nodiscard]] bool is_chain() const { return calls == 0; }
};

// The recorded row that a row of the step is, or is again; none for what stands for a segment's
// begin and end.
struct RecomputedOrigins {
  std::vector<EventId> events;
  std::vector<OpId> ops;
  std::vector<StorageId> storages;
  std::vector<SavedId> saved;
};

struct RecomputedStep {
  // Valid; without peaks and the allocator's counters, which are of the recorded step; with the
  // recording's fingerprint.
  Trace trace;
  RecomputedOrigins origins;
  std::vector<SegmentRows> segments;  // in order of their begin in forward
};

// How it comes about: docs/simulator.md, "Recompute". The segments are of this recording; layer
// calls overlap neither each other nor a chain's ops or what it gives up, and no two chains give
// the same up (bad_input if they do). Of a recording that is such a step itself, `gone` is what its
// own segments give up. Cost: O(recording + rows that run again).
[[nodiscard]] Result<RecomputedStep> recompute(const Trace& recording,
                                               std::vector<Segment> segments,
                                               const std::vector<SavedId>& gone = {});

}  // namespace stowage::simulator
