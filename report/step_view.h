// One step with everything that is shown of it: what the exporters take.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/alive_spans.h"
#include "report/memory_by_class.h"
#include "report/simulation.h"
#include "report/stalls.h"
#include "report/storage_story.h"
#include "report/timeline.h"
#include "simulator/plan/plan.h"
#include "traces/trace.h"

namespace stowage::report {

// Refers to the trace, which must outlive it; all else is its own.
struct StepView {
  const Trace* trace = nullptr;
  std::string title;  // "recorded", "plan p.json"
  Timeline timeline;
  AliveSpans spans;
  MemoryByClass memory;
  StorageStories stories;
  std::vector<StallRow> stalls;  // longest first; none in a recorded step
  std::optional<Bytes> budget;   // of the device
  simulator::PeakKind budget_on = simulator::PeakKind::active;
  Bytes peak_requested = 0;

  // Time of an event in this step; -1 for none.
  [[nodiscard]] Nanoseconds time_of(EventId event) const {
    return event.valid() ? timeline.time[event.index()] : -1;
  }
};

// Cost: O(trace + spans log spans).
[[nodiscard]] StepView recorded_step(const Trace& trace);
[[nodiscard]] StepView planned_step(const Trace& trace, const Replayed& replayed,
                                    std::vector<StallRow> stalls, const simulator::Plan& plan,
                                    std::string title);
[[nodiscard]] inline StepView planned_step(const Trace& trace, const Simulation& simulation,
                                           const simulator::Plan& plan, std::string title) {
  return planned_step(trace, simulation, simulation.stalls, plan, std::move(title));
}

}  // namespace stowage::report
