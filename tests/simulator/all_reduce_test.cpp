// The model of an all-reduce, by hand.
#include <gtest/gtest.h>

#include "simulator/network/all_reduce.h"
#include "simulator/network/network_settings.h"

namespace stowage::simulator {
namespace {

// A byte a nanosecond between hosts, two within one.
Network slow_network(std::int64_t ranks_per_host) {
  Network network;
  network.bytes_per_second = 1'000'000'000;
  network.latency = 100;
  network.ranks_per_host = ranks_per_host;
  network.host_bytes_per_second = 2'000'000'000;
  network.host_latency = 10;
  return network;
}

// 2(n-1) messages of bytes/n.
TEST(AllReduce, OneHostIsOneRing) {
  EXPECT_EQ(all_reduce_ns(slow_network(4), 800, 4), 6 * (10 + 100));
  EXPECT_EQ(all_reduce_ns(slow_network(4), 800, 2), 2 * (10 + 200));
  EXPECT_EQ(all_reduce_ns(slow_network(4), 900, 3), 4 * (10 + 150));
}

TEST(AllReduce, HostsOfOneRankAreOneRingOverTheNetwork) {
  EXPECT_EQ(all_reduce_ns(slow_network(1), 900, 3), 4 * (100 + 300));
  EXPECT_EQ(all_reduce_ns(slow_network(1), 100, 3), 4 * 100 + 134) << "4 x 33.3 ns, rounded up";
}

// Two hosts of four: three messages of 200 bytes to sum in each host and three to spread: 6 x 110.
// Each rank then has a part of 200 bytes, and its ring over the hosts sends 2 messages of 100; the
// four rings share the host's byte a nanosecond: 2 x (100 + 400).
TEST(AllReduce, SeveralHostsAreTwoLevels) {
  EXPECT_EQ(all_reduce_ns(slow_network(4), 800, 8), 660 + 1000);
  EXPECT_EQ(all_reduce_ns(slow_network(4), 800, 16), 660 + 6 * (100 + 200));
}

TEST(AllReduce, NothingToReduceTakesNoTime) {
  EXPECT_EQ(all_reduce_ns(slow_network(4), 800, 1), 0);
  EXPECT_EQ(all_reduce_ns(slow_network(4), 0, 8), 0);
}

TEST(AllReduce, HasALimit) {
  Network network = slow_network(1);
  network.bytes_per_second = 1;
  EXPECT_EQ(all_reduce_ns(network, Bytes{1} << 62, 1'000'000), 4'000'000'000'000);
}

// Two H200 and NCCL took 3.3 ms for 1 GiB, which is where the default comes from.
TEST(AllReduce, TheDefaultWithinAHostIsWhatWasMeasured) {
  EXPECT_NEAR(static_cast<double>(all_reduce_ns(Network{}, Bytes{1} << 30, 2)), 3.3e6, 3.3e4);
}

TEST(AllReduce, RanksFillHosts) {
  const Network network = slow_network(4);
  EXPECT_TRUE(fills_hosts(network, 1) && fills_hosts(network, 3) && fills_hosts(network, 12));
  EXPECT_FALSE(fills_hosts(network, 6));
  EXPECT_EQ(hosts_of(network, 3), 1);
  EXPECT_EQ(hosts_of(network, 12), 3);
}

TEST(NetworkSettings, AreValuesOfTheModel) {
  ReductionModel model;
  for (const char* setting :
       {"network.gbps=100", "network.latency_us=1.5", "network.ranks_per_host=4",
        "network.host_gbps=0.5", "network.host_latency_us=0", "network.bucket_mib=50",
        "network.first_bucket_mib=0.5"}) {
    EXPECT_TRUE(apply_setting(model, setting).ok()) << setting;
  }
  EXPECT_EQ(model.network.bytes_per_second, 100'000'000'000);
  EXPECT_EQ(model.network.latency, 1500);
  EXPECT_EQ(model.network.ranks_per_host, 4);
  EXPECT_EQ(model.network.host_bytes_per_second, 500'000'000);
  EXPECT_EQ(model.network.host_latency, 0);
  EXPECT_EQ(model.buckets.others, Bytes{50} << 20);
  EXPECT_EQ(model.buckets.first, Bytes{1} << 19);
  EXPECT_EQ(setting_value(model, "network.latency_us"), 1.5);
  EXPECT_EQ(setting_value(ReductionModel{}, "network.bucket_mib"), 25);
}

TEST(NetworkSettings, RefuseWhatIsNone) {
  const auto error = [](const std::string& setting) {
    ReductionModel model;
    const Status status = apply_setting(model, setting);
    return status ? std::string("none") : status.error().text();
  };
  EXPECT_EQ(error("network.gbp=1"),
            "--set: unknown network value 'network.gbp' (did you mean network.gbps?)");
  EXPECT_EQ(error("network.gbps"), "--set network.gbps: no value (write network.gbps=VALUE)");
  EXPECT_EQ(error("network.gbps=fast"), "--set network.gbps=fast: 'fast' is not a number");
  EXPECT_EQ(error("network.gbps=0"),
            "--set network.gbps: out of range (above 0, at most 1e6 GB/s)");
  EXPECT_EQ(error("network.latency_us=-1"),
            "--set network.latency_us: out of range (0 to 1e6 microseconds)");
  EXPECT_EQ(error("network.ranks_per_host=2.5"),
            "--set network.ranks_per_host: out of range (a whole number, 1 to 1000000)");
}

}  // namespace
}  // namespace stowage::simulator
