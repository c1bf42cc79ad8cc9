// What each kind of op of a recorded step does: how often, for how long, and how many bytes it
// makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace stowage::report {

// Ops within others count with the outermost one.
struct OpTotals {
  std::string name;             // of the outermost op, "(outside of ops)" for the rest
  std::int64_t calls = 0;       // outermost ops
  std::int64_t activities = 0;  // kernels, copies and memsets; 0 of a CPU's trace
  Nanoseconds time = 0;         // of the activities; of a CPU's trace from begin to end
  Bytes made = 0;               // of the storages on device 0 that it makes, whenever they go
};

// Longest first, of those that take as long by name. Cost: O(trace + rows log rows).
[[nodiscard]] std::vector<OpTotals> op_totals(const Trace& trace);

}  // namespace stowage::report
