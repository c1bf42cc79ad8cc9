#include "simulator/machine/calibration_settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/machine/host_lane.h"
#include "simulator/machine/link_model.h"
#include "simulator/machine/setting_text.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

constexpr double kMaxGbps = 1e6;
constexpr double kMaxLatencyUs = 1e9;
constexpr double kGib = 1 << 30;  // bytes; GB/s are bytes a nanosecond

Status set_rate(LinkCurve& curve, double gbps) {
  const double wanted = gbps * 1e9;
  if (curve.bytes.empty()) {
    const auto rate = static_cast<std::int64_t>(std::llround(wanted));
    curve.bytes = {1 << 20};
    curve.bytes_per_second = {rate};
    curve.bytes_per_second_p10 = {rate};
    return Unit{};
  }
  const std::int64_t best = best_rate(curve);
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

Error usage_error(std::string message, std::string hint = {}) {
  return Error{ErrorCode::usage, std::move(message), "", "", std::move(hint)};
}

// The field that a factor is kept in; null for the values that are no factor.
Ppm* factor_of(Calibration& calibration, const std::string& name) {
  if (name == "link.duplex") return &calibration.duplex;
  if (name == "link.copy_interference") return &calibration.copy_interference;
  if (name == "link.compute_interference") return &calibration.compute_interference;
  if (name == "compute.least_time") return &calibration.least_compute;
  if (name == "compute.rest_gain") return &calibration.rest_gain;
  if (name == "host.update_interference") return &calibration.host_update_interference;
  return nullptr;
}

// Without what each takes.
double host_gbps(const Calibration& calibration) {
  const bool is_known = knows_host_updates(calibration);
  const Nanoseconds per_gib = is_known ? calibration.host_update_ns_per_gib : kHostUpdateNsPerGib;
  return kGib / static_cast<double>(per_gib);
}
void set_host_rate(Calibration& calibration, double gbps) {
  calibration.host_update_ns_per_gib = std::max<Nanoseconds>(1, std::llround(kGib / gbps));
}

double best_gbps(const LinkCurve& curve) {
  return curve.bytes.empty() ? 0 : static_cast<double>(best_rate(curve)) / 1e9;
}

Result<const CalibrationSetting*> find_setting(const std::string& name) {
  const auto& settings = calibration_settings();
  const auto at = std::find_if(settings.begin(), settings.end(),
                               [&](const auto& known) { return known.name == name; });
  if (at != settings.end()) return &*at;
  std::vector<std::string> names;
  for (const auto& known : settings) names.push_back(known.name);
  const std::string near = nearest(name, names);
  return usage_error("--set: unknown calibration value '" + name + "'",
                     near.empty() ? "see stowage simulate --help" : "did you mean " + near + "?");
}

}  // namespace

const std::vector<CalibrationSetting>& calibration_settings() {
  // Below the lowest a rate or factor would round to nothing.
  constexpr double kLeast = 1e-6;
  static const std::vector<CalibrationSetting> settings = {
      {"link.h2d_gbps", "GB/s from host to device, the best rate of any size", "GB/s", kLeast,
       kMaxGbps},
      {"link.d2h_gbps", "GB/s from device to host, the best rate of any size", "GB/s", kLeast,
       kMaxGbps},
      {"link.latency_us", "microseconds of one transfer, both ways", "us", 0, kMaxLatencyUs},
      {"link.duplex", "speed of a lane while the other one is busy, in (0, 1]", "", kLeast, 1},
      {"link.copy_interference", "speed of a lane while compute is busy, in (0, 1]", "", kLeast, 1},
      {"link.compute_interference", "speed of compute while a lane is busy, in (0, 1]", "", kLeast,
       1},
      {"compute.least_time", "time of compute between long rests, of that without, in (0, 1]", "",
       kLeast, 1},
      {"compute.rest_gain", "compute time that a second of rest saves until then, in (0, 1]", "",
       kLeast, 1},
      {"host.update_gbps", "GB/s of parameter, gradient and state that the host updates with",
       "GB/s", kLeast, kMaxGbps},
      {"host.update_interference", "speed of the host's updates while a lane is busy, in (0, 1]",
       "", kLeast, 1},
  };
  return settings;
}

double setting_value(const Calibration& calibration, const std::string& name) {
  Calibration copy = calibration;
  if (const Ppm* factor = factor_of(copy, name)) {
    return static_cast<double>(*factor) / static_cast<double>(kPpm);
  }
  if (name == "link.h2d_gbps") return best_gbps(calibration.h2d);
  if (name == "link.d2h_gbps") return best_gbps(calibration.d2h);
  if (name == "host.update_gbps") return host_gbps(calibration);
  return static_cast<double>(std::max(calibration.h2d.latency, calibration.d2h.latency)) / 1000;
}

Status apply_setting(Calibration& calibration, const std::string& name, double value) {
  const auto found = find_setting(name);
  if (!found) return found.error();
  const CalibrationSetting& setting = **found;
  if (!(value >= setting.lowest && value <= setting.highest)) {
    return usage_error("--set " + name + ": out of range",
                       setting.unit.empty()   ? "a factor above 0, at most 1"
                       : setting.unit == "us" ? "0 to 1e9 microseconds"
                                              : "above 0, at most 1e6 GB/s");
  }
  if (Ppm* factor = factor_of(calibration, name)) {
    *factor = static_cast<Ppm>(std::llround(value * static_cast<double>(kPpm)));
    return Unit{};
  }
  if (name == "link.h2d_gbps") return set_rate(calibration.h2d, value);
  if (name == "link.d2h_gbps") return set_rate(calibration.d2h, value);
  if (name == "host.update_gbps") {
    set_host_rate(calibration, value);
    return Unit{};
  }
  const auto ns = static_cast<Nanoseconds>(std::llround(value * 1000));
  set_latency(calibration.h2d, ns);
  set_latency(calibration.d2h, ns);
  return Unit{};
}

Status apply_setting(Calibration& calibration, const std::string& setting) {
  const std::string name = name_of_setting(setting);
  if (const auto known = find_setting(name); !known) return known.error();
  const Result<double> value = value_of_setting(setting);
  if (!value) return value.error();
  return apply_setting(calibration, name, *value);
}

}  // namespace stowage::simulator
