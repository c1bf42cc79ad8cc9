// Where a step's GPU time went, by op.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace stowage::report {

struct GpuOpRow {
  std::string name;             // of the outermost op, "(outside of ops)" for the rest
  std::int64_t activities = 0;  // kernels, copies and memsets
  Nanoseconds duration = 0;
};

// Longest first. Empty for a CPU trace. Cost: O(activities * nesting of ops).
[[nodiscard]] std::vector<GpuOpRow> gpu_time_by_op(const Trace& trace);

}  // namespace stowage::report
