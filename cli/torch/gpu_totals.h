// What a trace says about its GPU, in a few numbers for `stowage profile`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/trace.h"

namespace stowage::cli {

struct GpuTotals {
  std::int64_t kernels = 0;
  std::int64_t copies = 0;
  std::int64_t memsets = 0;
  Nanoseconds busy_ns = 0;
  double attributed = 1;  // share of the device's time that belongs to an op of the step
  std::optional<double> timing_overhead;  // of the timing pass over the clean one; 0.01 = 1 %
};

[[nodiscard]] GpuTotals gpu_totals(const Trace& trace);

// What to say of a timing pass that was more than 10 % slower than the clean step, whose times are
// then scaled down a good deal (profiler/assembly/two_clocks.h); empty = nothing.
[[nodiscard]] std::string timing_warning(const GpuTotals& totals);

}  // namespace stowage::cli
