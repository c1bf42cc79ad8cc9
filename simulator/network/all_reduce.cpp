#include "simulator/network/all_reduce.h"

#include <algorithm>

#include "simulator/machine/link_model.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// `messages` of bytes/parts, one after the other.
Wide time_of_messages(std::int64_t messages, Bytes bytes, std::int64_t parts,
                      std::int64_t bytes_per_second, Nanoseconds latency) {
  constexpr Wide kSecond = 1'000'000'000;
  const Wide rate = Wide{parts} * bytes_per_second;
  return Wide{messages} * latency + (Wide{messages} * bytes * kSecond + rate - 1) / rate;
}

}  // namespace

bool fills_hosts(const Network& network, std::int64_t ranks) {
  return ranks <= network.ranks_per_host || ranks % network.ranks_per_host == 0;
}

std::int64_t hosts_of(const Network& network, std::int64_t ranks) {
  return (ranks + network.ranks_per_host - 1) / network.ranks_per_host;
}

Nanoseconds all_reduce_ns(const Network& network, Bytes bytes, std::int64_t ranks) {
  STOWAGE_ASSERT(ranks >= 1 && fills_hosts(network, ranks));
  if (ranks == 1 || bytes == 0) return 0;
  const std::int64_t hosts = hosts_of(network, ranks);
  const std::int64_t in_host = ranks / hosts;
  // The r rings over the hosts move bytes/r each and share the host's network.
  const Wide time =
      time_of_messages(2 * (in_host - 1), bytes, in_host, network.host_bytes_per_second,
                       network.host_latency) +
      time_of_messages(2 * (hosts - 1), bytes, hosts, network.bytes_per_second, network.latency);
  return static_cast<Nanoseconds>(std::min<Wide>(time, kMaxTransfer));
}

}  // namespace stowage::simulator
