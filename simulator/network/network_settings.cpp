#include "simulator/network/network_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "simulator/machine/setting_text.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

constexpr const char* kPrefix = "network.";

Error usage(std::string message, std::string hint) {
  return Error{ErrorCode::usage, std::move(message), "", "", std::move(hint)};
}

// Where a setting is kept, and how many of these are one of its unit.
struct Field {
  std::int64_t* value;
  double per_unit;
};
Field field_of(ReductionModel& model, const std::string& name) {
  constexpr double kGiga = 1e9;
  constexpr double kMicrosecond = 1e3;
  constexpr double kMebi = 1 << 20;
  if (name == "network.gbps") return {&model.network.bytes_per_second, kGiga};
  if (name == "network.latency_us") return {&model.network.latency, kMicrosecond};
  if (name == "network.host_gbps") return {&model.network.host_bytes_per_second, kGiga};
  if (name == "network.host_latency_us") return {&model.network.host_latency, kMicrosecond};
  if (name == "network.bucket_mib") return {&model.buckets.others, kMebi};
  if (name == "network.first_bucket_mib") return {&model.buckets.first, kMebi};
  return {&model.network.ranks_per_host, 1};
}

std::string range_of(const NetworkSetting& setting) {
  if (setting.unit.empty()) return "a whole number, 1 to 1000000";
  if (setting.unit == "us") return "0 to 1e6 microseconds";
  return "above 0, at most 1e6 " + setting.unit;
}

}  // namespace

const std::vector<NetworkSetting>& network_settings() {
  // Below it a rate or a limit would round to nothing.
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e6;
  constexpr double kMaxLatencyUs = 1e6;
  static const std::vector<NetworkSetting> settings = {
      {"network.gbps", "GB/s (50 are 400 Gbit/s) between hosts, of one host with all of its ranks",
       "GB/s", kLeast, kMost},
      {"network.latency_us", "microseconds of a message between hosts", "us", 0, kMaxLatencyUs},
      {"network.ranks_per_host", "ranks in each host", "", 1, kMost},
      {"network.host_gbps", "GB/s between ranks of a host", "GB/s", kLeast, kMost},
      {"network.host_latency_us", "microseconds of a message in a host", "us", 0, kMaxLatencyUs},
      {"network.bucket_mib", "MiB of gradients at which a bucket is closed (alone: the first, too)",
       "MiB", kLeast, kMost},
      {"network.first_bucket_mib", "the same of the first bucket", "MiB", kLeast, kMost},
  };
  return settings;
}

bool is_network_setting(const std::string& setting) {
  return setting.starts_with(kPrefix);
}

double setting_value(const ReductionModel& model, const std::string& name) {
  ReductionModel copy = model;
  const Field field = field_of(copy, name);
  return static_cast<double>(*field.value) / field.per_unit;
}

Status apply_setting(ReductionModel& model, const std::string& setting) {
  const std::string name = name_of_setting(setting);
  const auto& all = network_settings();
  const auto known = std::find_if(all.begin(), all.end(),
                                  [&](const NetworkSetting& each) { return each.name == name; });
  if (known == all.end()) {
    std::vector<std::string> names;
    for (const NetworkSetting& each : all) names.push_back(each.name);
    const std::string near = nearest(name, names);
    return usage("--set: unknown network value '" + name + "'",
                 near.empty() ? "see stowage simulate --help" : "did you mean " + near + "?");
  }
  const Result<double> value = value_of_setting(setting);
  if (!value) return value.error();
  const bool is_whole = !known->unit.empty() || *value == std::floor(*value);
  if (!(*value >= known->lowest && *value <= known->highest) || !is_whole) {
    return usage("--set " + name + ": out of range", range_of(*known));
  }
  const Field field = field_of(model, name);
  const auto least = static_cast<std::int64_t>(known->lowest > 0 ? 1 : 0);
  *field.value = std::max<std::int64_t>(least, std::llround(*value * field.per_unit));
  return Unit{};
}

Status apply_settings(ReductionModel& model, const std::vector<std::string>& settings) {
  bool has_limit = false;
  bool has_first = false;
  for (const std::string& setting : settings) {
    if (Status status = apply_setting(model, setting); !status) return status;
    has_limit = has_limit || name_of_setting(setting) == "network.bucket_mib";
    has_first = has_first || name_of_setting(setting) == "network.first_bucket_mib";
  }
  if (has_limit && !has_first) model.buckets.first = model.buckets.others;
  return Unit{};
}

}  // namespace stowage::simulator
