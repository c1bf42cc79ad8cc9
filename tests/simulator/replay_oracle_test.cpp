// The fast replay against slow oracles, and invariants, on random traces and decisions.
#include <gtest/gtest.h>

#include <map>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/machine/rest_gain.h"
#include "simulator/replay/replay.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/simulator/oracle_time.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_parts.h"

namespace stowage::simulator {
namespace {

using testing::random_decisions;
using testing::random_trace;

struct ReplayCase {
  Trace trace;
  StepIndex index;
  Schedule schedule;
  explicit ReplayCase(std::uint64_t seed, bool device_times = false)
      : trace(random_trace(seed, {static_cast<int>(4 + seed % 14), device_times})), index(trace) {
    const auto lowered = lower(index, random_decisions(trace, seed));
    EXPECT_TRUE(lowered.ok()) << seed << ": " << (lowered.ok() ? "" : lowered.error().text());
    schedule = lowered.ok() ? lowered->schedule : resident_schedule(index);
  }
};

// The cases are worth something only if they hold what can go wrong.
TEST(ReplayOracle, RandomCasesCoverTheGround) {
  int parts = 0, shared = 0, apart = 0, unused = 0, twice = 0, lasting = 0, late = 0, stalls = 0;
  int on_compute = 0, blocking = 0, reused = 0, prefetched = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const ReplayCase c(seed);
    const Schedule& s = c.schedule;
    std::vector<int> reloads(s.tenants.size(), 0);
    Bytes sum = 0;
    for (const StayId id : testing::reloads(s)) {
      const Stay& stay = s.stays[id.index()];
      ++reloads[stay.tenant.index()];
      twice += stay.unpacks.size() > 1;
      for (const UnpackId u : stay.unpacks)
        lasting += !c.trace.unpacks.released_event[u.index()].valid();
    }
    for (const StayId id : testing::made_stays(s)) {
      const Stay& stay = s.stays[id.index()];
      const Tenant& tenant = s.tenant(id);
      const auto storage = tenant.storage.index();
      parts += tenant.bytes < c.trace.storages.bytes[storage];
      shared += tenant.saved.size() > 1;
      apart += reloads[stay.tenant.index()] > 1;
      unused += reloads[stay.tenant.index()] == 0;
      late += c.trace.storages.natural_free_event[storage] >
              c.trace.saved.event[tenant.saved.front().index()];
      on_compute += stay.store_mode == CopyMode::compute;
      blocking += stay.store_mode == CopyMode::blocking;
      sum += (tenant.bytes + kHostSlotAlignment - 1) / kHostSlotAlignment * kHostSlotAlignment;
    }
    reused += s.host_bytes < sum;
    for (const Instruction& i : s.instructions) {
      prefetched += i.action == Action::load && i.anchor.side == Side::after;
    }
    stalls += static_cast<int>(replay(c.index, s).stalls.size());
  }
  const std::pair<const char*, int> counts[] = {
      {"parts", parts},       {"shared", shared}, {"apart", apart},
      {"unused", unused},     {"twice", twice},   {"lasting", lasting},
      {"late", late},         {"stalls", stalls}, {"compute", on_compute},
      {"blocking", blocking}, {"reused", reused}, {"prefetched", prefetched}};
  for (const auto& [what, count] : counts) EXPECT_GE(count, 20) << what;
}

// Of what moves: every element type, bytes that were written ahead of their pack, behind it.
TEST(ReplayOracle, RandomCasesHoldChangedBytesOfEveryType) {
  std::map<DType, int> of_type;
  int changed = 0;
  int written_behind = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const ReplayCase c(seed);
    for (const Tenant& tenant : c.schedule.tenants) {
      for (const SavedId s : tenant.saved) {
        ++of_type[c.trace.tensors.dtype[c.trace.saved.tensor[s.index()].index()]];
        changed += c.trace.saved.version[s.index()] > 0;
      }
      const auto writes = c.index.writes_of(tenant.storage);
      written_behind += c.trace.storages.alloc_event[tenant.storage.index()].valid() &&
                        !writes.empty() &&
                        writes.back() > c.trace.saved.event[tenant.saved.front().index()];
    }
  }
  EXPECT_EQ(of_type.size(), static_cast<std::size_t>(DType::other) + 1);
  for (const auto& [type, count] : of_type) EXPECT_GE(count, 20) << name_of(type);
  EXPECT_GE(changed, 20);
  EXPECT_GE(written_behind, 20);
}

TEST(ReplayOracle, MemoryEqualsTheLiveSetAtEveryEvent) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const ReplayCase c(seed);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index, c.schedule, &detail);
    const auto oracle = testing::oracle_memory(c.trace, c.schedule);
    ASSERT_EQ(result.peak_requested, oracle.peak) << "seed " << seed;
    ASSERT_EQ(result.peak_event, oracle.peak_event) << "seed " << seed;
    ASSERT_EQ(detail.requested, oracle.requested) << "seed " << seed;
    ASSERT_GE(oracle.lowest, 0) << "seed " << seed;
    ASSERT_EQ(result.peak_active, result.peak_requested) << "seed " << seed;
  }
}

TEST(ReplayOracle, TimeEqualsSteppingByNanoseconds) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const ReplayCase c(seed, seed % 2 == 1);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index, c.schedule, &detail);
    const auto oracle = testing::oracle_time(c.index, c.schedule);
    ASSERT_EQ(result.step_ns, oracle.step_ns) << "seed " << seed;
    ASSERT_EQ(result.compute_ns, oracle.compute_ns) << "seed " << seed;
    ASSERT_EQ(result.stall_ns, oracle.stall_ns) << "seed " << seed;
    ASSERT_EQ(detail.time, oracle.time) << "seed " << seed;
  }
}

TEST(ReplayOracle, DetailDoesNotChangeTheResult) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const ReplayCase c(seed, seed % 2 == 0);
    ReplayDetail detail;
    const ReplayResult with = replay(c.index, c.schedule, &detail);
    const ReplayResult without = replay(c.index, c.schedule);
    ASSERT_EQ(with.step_ns, without.step_ns);
    ASSERT_EQ(with.stall_ns, without.stall_ns);
    ASSERT_EQ(with.peak_requested, without.peak_requested);
    ASSERT_EQ(with.stalls.size(), without.stalls.size());
  }
}

TEST(ReplayOracle, Invariants) {
  int gained = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const bool device_times = seed % 2 == 1;
    const ReplayCase c(seed, device_times);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index, c.schedule, &detail);
    const ReplayResult resident = replay(c.index, resident_schedule(c.index));
    // Offloading never shortens compute but for what it gains by waiting, and never the step.
    const Ppm least = kPpm * kPpm / rest_gain(c.trace.calibration).boost;
    ASSERT_GE(result.compute_ns * kPpm, resident.compute_ns * least) << "seed " << seed;
    ASSERT_GE(result.step_ns, resident.step_ns) << "seed " << seed;
    gained += result.compute_ns < resident.compute_ns;
    ASSERT_EQ(resident.step_ns, c.index.resident_time().back()) << "seed " << seed;
    if (!device_times) {
      ASSERT_EQ(result.step_ns, result.compute_ns + result.stall_ns) << "seed " << seed;
    }
    Nanoseconds stalls = 0;
    for (const Stall& stall : result.stalls) {
      ASSERT_GT(stall.duration, 0);
      ASSERT_TRUE(stall.stay.valid());
      stalls += stall.duration;
    }
    ASSERT_EQ(stalls, result.stall_ns) << "seed " << seed;
    ASSERT_EQ(detail.transfers.size(), c.schedule.stays.size());
    for (const Transfer& transfer : detail.transfers) {
      ASSERT_LE(0, transfer.ready);
      ASSERT_LE(transfer.ready, transfer.start);
      ASSERT_LE(transfer.start, transfer.end);
      ASSERT_LE(transfer.end, result.step_ns);
    }
    ASSERT_TRUE(std::is_sorted(detail.time.begin(), detail.time.end())) << "seed " << seed;
    ASSERT_TRUE(find_hazards(c.index, c.schedule).empty())
        << "seed " << seed << ": " << find_hazards(c.index, c.schedule).front().text;
  }
  EXPECT_GT(gained, 20);
}

// Without interference and duplex factors, and without copies on the compute stream that share the
// link, the step is a max-plus function of the transfer times (maxima and sums only), so it cannot
// get longer when every transfer gets shorter. With them it can: a copy that moves into busy
// compute slows that compute down.
TEST(ReplayOracle, AFasterLinkIsNotSlowerForTheSameSchedule) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    ReplayCase c(seed, seed % 2 == 1);
    for (Stay& stay : c.schedule.stays) {
      if (stay.store_mode == CopyMode::compute) stay.store_mode = CopyMode::blocking;
      if (stay.load_mode == CopyMode::compute) stay.load_mode = CopyMode::blocking;
    }
    Calibration& link = c.trace.calibration;
    link.duplex = link.copy_interference = link.compute_interference = kPpm;
    link.rest_gain = 0;
    const ReplayResult slow = replay(c.index, c.schedule);
    link.d2h.bytes_per_second[0] *= 2;
    link.h2d.bytes_per_second[0] *= 2;
    const ReplayResult fast = replay(c.index, c.schedule);
    ASSERT_LE(fast.step_ns, slow.step_ns) << "seed " << seed;
    ASSERT_EQ(fast.peak_requested, slow.peak_requested) << "seed " << seed;
  }
}

// A schedule that moves nothing has the recorded memory at every event.
TEST(ReplayOracle, ResidentIsAsRecorded) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const ReplayCase c(seed);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index, resident_schedule(c.index), &detail);
    ASSERT_EQ(detail.requested, c.index.resident_bytes());
    ASSERT_EQ(detail.time, c.trace.events.time);
    ASSERT_EQ(result.stall_ns, 0);
    ASSERT_EQ(result.host_bytes, 0);
  }
}

}  // namespace
}  // namespace stowage::simulator
