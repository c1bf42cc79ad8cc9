// What if the link, or the device, were another one: calibration values that a person may change,
// by name. `stowage simulate --set link.h2d_gbps=25` and the desktop program's panel know the same
// ones.
#pragma once

#include <string>
#include <vector>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

struct CalibrationSetting {
  std::string name;
  std::string help;
  std::string unit;  // "GB/s", "us"; empty: a factor
  double lowest = 0;
  double highest = 1;
};

// link.h2d_gbps, link.d2h_gbps: GB/s (1000-based); the curve is scaled so that this is its best
// rate. link.latency_us: of one transfer, both ways; the curves' times move by the difference.
// host.update_gbps: GB/s of parameter, gradient and state that the host updates with;
// host.update_interference: its speed beside copies.
// link.duplex, link.copy_interference, link.compute_interference, compute.least_time,
// compute.rest_gain: a factor in (0, 1].
[[nodiscard]] const std::vector<CalibrationSetting>& calibration_settings();

// What a calibration has; link.latency_us: the larger of both ways. Where it has none 0, of
// host.update_gbps what is assumed then.
// Precondition: a known name.
[[nodiscard]] double setting_value(const Calibration& calibration, const std::string& name);

// Errors: usage, an unknown name with the nearest one, a value out of range.
[[nodiscard]] Status apply_setting(Calibration& calibration, const std::string& name, double value);

// "NAME=VALUE". Errors: those, and a value that is no number.
[[nodiscard]] Status apply_setting(Calibration& calibration, const std::string& setting);

}  // namespace stowage::simulator
