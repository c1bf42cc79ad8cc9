#include "cli/calibration_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/console.h"
#include "simulator/link_model.h"
#include "traces/nearest.h"

namespace stowage::cli {
namespace {

constexpr double kMaxGbps = 1e6;
constexpr double kMaxLatencyUs = 1e9;

Status set_rate(LinkCurve& curve, double gbps) {
  const double wanted = gbps * 1e9;
  if (curve.bytes.empty()) {
    const auto rate = static_cast<std::int64_t>(std::llround(wanted));
    curve.bytes = {1 << 20};
    curve.bytes_per_second = {rate};
    curve.bytes_per_second_p10 = {rate};
    return Unit{};
  }
  const std::int64_t best = simulator::best_rate(curve);
  const double factor = wanted / static_cast<double>(std::max<std::int64_t>(best, 1));
  const auto scale = [factor](std::int64_t& rate) {
    rate = std::max<std::int64_t>(1, std::llround(static_cast<double>(rate) * factor));
  };
  std::for_each(curve.bytes_per_second.begin(), curve.bytes_per_second.end(), scale);
  std::for_each(curve.bytes_per_second_p10.begin(), curve.bytes_per_second_p10.end(), scale);
  return Unit{};
}

// The curve's times include the latency: time = bytes / rate.
void set_latency(LinkCurve& curve, Nanoseconds latency) {
  const auto change = static_cast<double>(latency - curve.latency);
  const auto shift = [&](std::vector<std::int64_t>& rates) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const auto bytes = static_cast<double>(curve.bytes[i]);
      const double time = bytes * 1e9 / static_cast<double>(std::max<std::int64_t>(rates[i], 1));
      rates[i] =
          std::max<std::int64_t>(1, std::llround(bytes * 1e9 / std::max(time + change, 1.0)));
    }
  };
  shift(curve.bytes_per_second);
  shift(curve.bytes_per_second_p10);
  curve.latency = latency;
}

}  // namespace

const std::vector<CalibrationSetting>& calibration_settings() {
  static const std::vector<CalibrationSetting> settings = {
      {"link.h2d_gbps", "GB/s from host to device, the best rate of any size"},
      {"link.d2h_gbps", "GB/s from device to host, the best rate of any size"},
      {"link.latency_us", "microseconds of one transfer, both ways"},
      {"link.duplex", "speed of a lane while the other one is busy, in (0, 1]"},
      {"link.copy_interference", "speed of a lane while compute is busy, in (0, 1]"},
      {"link.compute_interference", "speed of compute while a lane is busy, in (0, 1]"},
      {"compute.least_time", "time of compute between long rests, of that without, in (0, 1]"},
      {"compute.rest_gain", "compute time that a second of rest saves until then, in (0, 1]"},
  };
  return settings;
}

Status apply_setting(Calibration& calibration, const std::string& setting) {
  const auto equals = setting.find('=');
  const std::string name = setting.substr(0, equals);
  std::vector<std::string> names;
  for (const auto& known : calibration_settings()) names.push_back(known.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string near = nearest(name, names);
    return usage_error("--set: unknown calibration value '" + name + "'",
                       near.empty() ? "see stowage simulate --help" : "did you mean " + near + "?");
  }
  if (equals == std::string::npos) {
    return usage_error("--set " + setting + ": no value", "write " + name + "=VALUE");
  }
  const std::string text = setting.substr(equals + 1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool factor =
      name == "link.duplex" || name.ends_with("interference") || name.starts_with("compute.");
  const bool latency = name == "link.latency_us";
  const double highest = factor ? 1.0 : (latency ? kMaxLatencyUs : kMaxGbps);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return usage_error("--set " + setting + ": '" + text + "' is not a number");
  }
  // Below these a rate or factor would round to nothing.
  const double lowest = latency ? 0.0 : 1e-6;
  if (value < lowest || value > highest) {
    return usage_error("--set " + setting + ": out of range", factor ? "a factor above 0, at most 1"
                                                              : latency
                                                                  ? "0 to 1e9 microseconds"
                                                                  : "above 0, at most 1e6 GB/s");
  }
  if (name == "link.h2d_gbps") return set_rate(calibration.h2d, value);
  if (name == "link.d2h_gbps") return set_rate(calibration.d2h, value);
  if (latency) {
    const auto ns = static_cast<Nanoseconds>(std::llround(value * 1000));
    set_latency(calibration.h2d, ns);
    set_latency(calibration.d2h, ns);
    return Unit{};
  }
  const auto ppm = static_cast<Ppm>(std::llround(value * static_cast<double>(kPpm)));
  if (name == "link.duplex") calibration.duplex = ppm;
  if (name == "link.copy_interference") calibration.copy_interference = ppm;
  if (name == "link.compute_interference") calibration.compute_interference = ppm;
  if (name == "compute.least_time") calibration.least_compute = ppm;
  if (name == "compute.rest_gain") calibration.rest_gain = ppm;
  return Unit{};
}

}  // namespace stowage::cli
