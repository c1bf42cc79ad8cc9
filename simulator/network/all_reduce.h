// How long an all-reduce takes: a model, not a measurement.
//
// Over n ranks in one ring each rank sends 2(n-1) messages of bytes/n, one after the other: n-1
// that sum (reduce-scatter), n-1 that spread the sums (all-gather). A message takes a latency and
// its bytes at the link's rate. No all-reduce sends fewer bytes (P. Patarasuk, X. Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69,
// 2009; NCCL's ring is this one).
//
// Over several hosts of r ranks each in two levels: reduce-scatter in each host, a ring over the
// hosts for each of the r parts, all r at once, which share the host's network; all-gather in each
// host. With one rank a host that is one ring over the network.
//
// Not in it: that the levels of one bucket, and of two, overlap in NCCL; trees, whose latency grows
// with the logarithm of the hosts, what a switch sums, protocols for small messages, ranks that
// come late, and other jobs on the network. So what it says of thousands of hosts and small buckets
// is on the slow side.
#pragma once

#include <cstdint>

#include "traces/units.h"

namespace stowage::simulator {

// The defaults are assumptions, except host_bytes_per_second: 1 GiB over NCCL and two H200 took
// 3.3 ms, of a ring of two ranks 325 GB/s.
struct Network {
  // Of a host, each way, all of its ranks together: 8 ports of 400 Gbit/s.
  std::int64_t bytes_per_second = 400'000'000'000;
  Nanoseconds latency = 5'000;  // of a message between hosts
  std::int64_t ranks_per_host = 8;
  std::int64_t host_bytes_per_second = 325'000'000'000;  // of a rank to another one of its host
  Nanoseconds host_latency = 2'000;
};

// `ranks` lie on one host, or fill several.
[[nodiscard]] bool fills_hosts(const Network& network, std::int64_t ranks);
[[nodiscard]] std::int64_t hosts_of(const Network& network, std::int64_t ranks);

// What goes within hosts and what goes between them are each rounded up to 1 ns; at most 4000 s. 0
// for one rank, and for nothing to reduce. Preconditions: ranks >= 1, fills_hosts(), rates and
// ranks_per_host >= 1.
[[nodiscard]] Nanoseconds all_reduce_ns(const Network& network, Bytes bytes, std::int64_t ranks);

}  // namespace stowage::simulator
