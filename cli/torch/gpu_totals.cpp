#include "cli/torch/gpu_totals.h"

#include <algorithm>
#include <cmath>

namespace stowage::cli {

GpuTotals gpu_totals(const Trace& trace) {
  GpuTotals totals;
  Nanoseconds outside = 0;  // kernels of the step that no op launched
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    totals.kernels += trace.gpu.kind[i] == GpuKind::kernel ? 1 : 0;
    totals.copies += trace.gpu.kind[i] == GpuKind::memcpy ? 1 : 0;
    totals.memsets += trace.gpu.kind[i] == GpuKind::memset ? 1 : 0;
    totals.busy_ns += trace.gpu.duration[i];
    // A copy outside of ops is the step's own: it fetches the loss.
    const bool is_kernel = trace.gpu.kind[i] == GpuKind::kernel;
    if (is_kernel && !trace.gpu.op[i].valid()) outside += trace.gpu.duration[i];
  }
  // The recording's counter holds those of the table as well as what is not in it.
  const Nanoseconds lost = std::max(outside, trace.quality.unattributed_ns);
  const auto all = static_cast<double>(totals.busy_ns + lost - outside);
  if (all > 0) totals.attributed = 1 - static_cast<double>(lost) / all;
  if (trace.overhead.clean.step_ns > 0) {
    totals.timing_overhead = static_cast<double>(trace.overhead.timing.step_ns) /
                                 static_cast<double>(trace.overhead.clean.step_ns) -
                             1;
  }
  return totals;
}

std::string timing_warning(const GpuTotals& totals) {
  constexpr double kTolerated = 0.10;
  if (!totals.timing_overhead || *totals.timing_overhead <= kTolerated) return "";
  return "recording the GPU made the step " +
         std::to_string(std::lround(*totals.timing_overhead * 100)) +
         " % slower; its times are scaled down to the clean step's, and predicted step times are "
         "less sure";
}

}  // namespace stowage::cli
