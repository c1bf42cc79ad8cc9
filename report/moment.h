// A place in a step, in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/step/step.h"
#include "traces/trace.h"

namespace stowage::report {

struct Moment {
  EventId event;
  Nanoseconds time = 0;
  OpId op;           // innermost op, -1 = none
  OpId recorded_op;  // the same in the recording, which `stowage inspect --at` knows; -1 = none
  std::string op_name;
  std::string layer;
  std::optional<PhaseKind> phase;
  Bytes requested = 0;  // on device 0
  Bytes active = -1;    // of the recorded peak; -1 = not known here
  Bytes reserved = -1;  // -1 = null
  bool is_peak = true;
};

// Position of an event in words: op, layer, phase; its time in the recorded step.
[[nodiscard]] Moment moment_at(const Trace& trace, EventId event);
// In a step of which something may run again.
[[nodiscard]] Moment moment_at(const simulator::Step& step, EventId event);

// "layers.3.mlp", "step" outside any.
[[nodiscard]] std::string layer_name(const Trace& trace, LayerId layer);

// A stretch of the time axis with a name below it.
struct PhaseSpan {
  std::string name;
  Nanoseconds begin = 0;
};

// One a phase; `event_time` has the time of each event, in the recorded or in the planned step.
[[nodiscard]] std::vector<PhaseSpan> phase_spans(const Trace& trace,
                                                 const std::vector<Nanoseconds>& event_time);

}  // namespace stowage::report
