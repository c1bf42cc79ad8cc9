// What is assumed of the network and of buckets, by name: `stowage simulate --ranks 64 --set
// network.gbps=100`.
#pragma once

#include <string>
#include <vector>

#include "simulator/network/all_reduce.h"
#include "simulator/network/gradient_buckets.h"
#include "traces/result.h"

namespace stowage::simulator {

struct ReductionModel {
  Network network;
  BucketLimits buckets;
};

struct NetworkSetting {
  std::string name;
  std::string help;
  std::string unit;  // "GB/s", "us", "MiB"; empty: a number of ranks
  double lowest = 0;
  double highest = 1;
};

// network.gbps, network.host_gbps: GB/s (1000-based). network.latency_us, network.host_latency_us:
// of a message. network.ranks_per_host: a whole number. network.bucket_mib,
// network.first_bucket_mib: at how many bytes a bucket is closed.
[[nodiscard]] const std::vector<NetworkSetting>& network_settings();

// "network.NAME=VALUE" is for this table, whether it knows the name or not.
[[nodiscard]] bool is_network_setting(const std::string& setting);

// Precondition: a known name.
[[nodiscard]] double setting_value(const ReductionModel& model, const std::string& name);

// Errors: usage, an unknown name with the nearest one, no value or one that is no number, a value
// out of range.
[[nodiscard]] Status apply_setting(ReductionModel& model, const std::string& setting);
// Each in turn. A bucket's limit alone is that of the first one, too, as DDP(bucket_cap_mb=..) is.
[[nodiscard]] Status apply_settings(ReductionModel& model,
                                    const std::vector<std::string>& settings);

}  // namespace stowage::simulator
