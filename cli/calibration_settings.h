// `--set link.h2d_gbps=25`: what if the link were another one?
#pragma once

#include <string>
#include <vector>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

struct CalibrationSetting {
  std::string name;
  std::string help;
};

// link.h2d_gbps, link.d2h_gbps: GB/s (1000-based); the curve is scaled so that this is its best
// rate. link.latency_us: of one transfer, both ways; the curves' times move by the difference.
// link.duplex, link.copy_interference, link.compute_interference, compute.least_time,
// compute.rest_gain: a factor in (0, 1].
[[nodiscard]] const std::vector<CalibrationSetting>& calibration_settings();

// "NAME=VALUE". Errors: usage, an unknown name with the nearest one, a value that is no number or
// out of range.
[[nodiscard]] Status apply_setting(Calibration& calibration, const std::string& setting);

}  // namespace stowage::cli
