// Slow, obvious oracle for the time of a schedule: time passes one nanosecond at a time, each with
// the factors that docs/simulator.md gives for what is busy in it.
#pragma once

#include "simulator/replay/replay.h"

namespace stowage::testing {

struct OracleTime {
  Nanoseconds step_ns = 0;
  Nanoseconds compute_ns = 0;
  Nanoseconds stall_ns = 0;
  std::vector<Nanoseconds> time;  // of each event
};

OracleTime oracle_time(const simulator::StepIndex& index, const simulator::Schedule& schedule);

}  // namespace stowage::testing
