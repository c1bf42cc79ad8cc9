#include "profiler/assembly/two_clocks.h"

#include <algorithm>
#include <cstddef>

namespace stowage::profiler {

namespace {

constexpr int kBisections = 60;

double end_of(const TwoClocks& clocks, const Scales& scales) {
  double launched = 0;
  double busy = 0;
  for (std::size_t e = 0; e < clocks.launch.size(); ++e) {
    launched += scales.launch * static_cast<double>(clocks.launch[e]);
    if (clocks.compute[e] > 0) {
      busy = std::max(busy, launched) + scales.compute * static_cast<double>(clocks.compute[e]);
    }
    if (clocks.sync[e] != 0) launched = std::max(launched, busy);
  }
  return std::max(busy, launched);
}

// The largest launch scale in [0, 1] with which the step is no longer than `limit`; end at 0 is.
double largest_launch_scale(const TwoClocks& clocks, double limit) {
  if (end_of(clocks, {1, 1}) <= limit) return 1;
  double fits = 0;
  double too_long = 1;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (fits + too_long) / 2;
    (end_of(clocks, {middle, 1}) <= limit ? fits : too_long) = middle;
  }
  return fits;
}

}  // namespace

Nanoseconds step_end(const TwoClocks& clocks, const Scales& scales) {
  return static_cast<Nanoseconds>(end_of(clocks, scales));
}

Scales fit_scales(const TwoClocks& clocks, Nanoseconds clean) {
  const double as_measured = end_of(clocks, {1, 1});
  if (clean <= 0 || as_measured <= 0) return {};
  const auto target = static_cast<double>(clean);
  if (as_measured <= target) return {target / as_measured, target / as_measured};
  const double device_alone = end_of(clocks, {0, 1});
  if (device_alone <= target) return {largest_launch_scale(clocks, target), 1};
  const double hidden = largest_launch_scale(clocks, device_alone * 1.005);
  const double factor = target / end_of(clocks, {hidden, 1});
  return {hidden * factor, factor};
}

}  // namespace stowage::profiler
