// Where a program point lies in a trace: all events that it names, in order. A layer that is called
// several times has several.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Looks each point up once: O(events + ops) for the first question, O(log points) for the same one
// again. Refers to the trace.
class PointEvents {
 public:
  explicit PointEvents(const Trace& trace) : trace_(trace) {}

  // fwd and bwd, begin and end: the layer's events. opt begin and end: the first and last event of
  // each optimizer phase. op N: op_begin of the N-th (from 0) outermost op of that phase whose
  // innermost layer it is. Errors (bad_input): a relative point, no such layer, no such op, a layer
  // without such an event.
  [[nodiscard]] Result<std::vector<EventId>> find(const ProgramPoint& point);

 private:
  using Key = std::tuple<ProgramPoint::Phase, std::string, ProgramPoint::Where, std::int32_t>;

  [[nodiscard]] Result<std::vector<EventId>> look_up(const ProgramPoint& point) const;
  [[nodiscard]] std::vector<EventId> phase_events(const ProgramPoint& point) const;
  [[nodiscard]] std::vector<EventId> layer_events(const ProgramPoint& point, LayerId layer) const;
  [[nodiscard]] std::vector<EventId> op_events(const ProgramPoint& point, LayerId layer) const;

  const Trace& trace_;
  std::map<Key, std::vector<EventId>> found_;
};

}  // namespace stowage::simulator
