#include "profiler/assembly/busy_gpu.h"

#include <numeric>

namespace stowage::profiler {

namespace {
constexpr Ppm kBusy = 970'000;
}  // namespace

void drop_rest_gain_unless_busy(Trace& trace) {
  const auto& durations = trace.gpu.duration;
  const Nanoseconds busy = std::accumulate(durations.begin(), durations.end(), Nanoseconds{0});
  const Nanoseconds step = trace.overhead.clean.step_ns;
  if (step > 0 && Wide{busy} * kPpm >= Wide{step} * kBusy) return;
  trace.calibration.least_compute = kPpm;
  trace.calibration.rest_gain = 0;
}

}  // namespace stowage::profiler
