// Random steps with updates on the host, next to all else that moves: every lowering is free of
// hazards, the fast replay says what the slow oracles say, and damage is caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/step/unroll.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/simulator/oracle_time.h"
#include "tests/support/all_on_host.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_damage.h"

namespace stowage::simulator {
namespace {

// Some of what the host can update it does.
class HostUpdateCase {
 public:
  explicit HostUpdateCase(std::uint64_t seed, int ops = 0)
      : random_(seed), recording_(calibrated(seed, ops)), index_(step_of(recording_, random_)) {
    const Trace& trace = index_.trace();
    Decisions decisions = testing::random_decisions(trace, seed);
    decisions.parameters = testing::random_shards(trace, seed);
    decisions.optimizer = testing::random_state(trace, seed);
    decisions.gradients = testing::random_gradients(trace, seed);
    const std::vector<StorageId>& on_host = index_.step().host_updates();
    const Storages& storages = trace.storages;
    const auto is_updated = [&](StorageId storage) {
      const StorageId row = index_.step().origin(storage).row;
      return storages.storage_class[storage.index()] == StorageClass::parameter &&
             std::find(on_host.begin(), on_host.end(), row) != on_host.end();
    };
    decisions.optimizer.updated_on_host.assign(storages.size(), false);
    decisions.optimizer.state_streams.resize(storages.size(), false);
    for (std::size_t s = 0; s < storages.size(); ++s) {
      const StorageId owner = storages.parameter[s];
      decisions.optimizer.updated_on_host[s] = is_updated(StorageId(s));
      if (owner.valid() && is_updated(owner)) decisions.optimizer.state_streams[s] = false;
    }
    auto lowered = lower(index_, decisions);
    EXPECT_TRUE(lowered.ok()) << seed << (lowered ? "" : ": " + lowered.error().text());
    if (lowered) schedule_ = std::move(lowered->schedule);
  }
  HostUpdateCase(const HostUpdateCase&) = delete;
  HostUpdateCase& operator=(const HostUpdateCase&) = delete;

  [[nodiscard]] const StepIndex& index() const { return index_; }
  [[nodiscard]] const Trace& trace() const { return index_.trace(); }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] std::size_t updates() const { return index_.step().host_updates().size(); }

 private:
  static Trace calibrated(std::uint64_t seed, int ops) {
    testing::RandomTraceOptions options;
    options.ops = ops > 0 ? ops : static_cast<int>(4 + seed % 14);
    options.parameters = true;
    options.several_weights = seed % 3 == 0;
    options.updates_in_backward = seed % 5 == 2;
    options.device_times = seed % 2 == 1;
    Trace trace = testing::random_trace(seed, options);
    if (seed % 4 == 0) return trace;
    std::mt19937_64 random(seed + 99);
    Calibration& link = trace.calibration;
    link.host_update_ns = static_cast<Nanoseconds>(random() % 40);
    link.host_update_ns_per_gib = static_cast<Nanoseconds>(random() % 1'500'000'000 + 1);
    link.host_update_interference = static_cast<Ppm>(random() % 900'000 + 100'000);
    return trace;
  }
  static Step step_of(const Trace& recording, std::mt19937_64& random) {
    Structure structure = testing::all_on_host(StepIndex(recording));
    const bool all = random() % 3 == 0;
    std::erase_if(structure.host_updates, [&](StorageId) { return !all && random() % 3 == 0; });
    auto step = unroll(recording, structure);
    EXPECT_TRUE(step.ok()) << (step ? "" : step.error().text());
    return step ? std::move(step).value() : Step(recording);
  }

  std::mt19937_64 random_;
  const Trace recording_;
  const StepIndex index_;
  Schedule schedule_;
};

TEST(HostUpdateOracle, NoHazards) {
  std::size_t updates = 0;
  std::size_t in_backward = 0;
  int steps = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const HostUpdateCase c(seed);
    const auto hazards = find_hazards(c.index(), c.schedule());
    ASSERT_TRUE(hazards.empty()) << "seed " << seed << ": " << hazards.front().text;
    ASSERT_EQ(host_updates(c.trace(), c.schedule()).size(), c.updates()) << "seed " << seed;
    steps += c.updates() > 0 ? 1 : 0;
    updates += c.updates();
    in_backward += seed % 5 == 2 ? c.updates() : 0;
  }
  EXPECT_GT(steps, 400);
  EXPECT_GT(updates, 800U);
  EXPECT_GT(in_backward, 100U);
}

TEST(HostUpdateOracle, MemoryEqualsTheLiveSetAtEveryEvent) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const HostUpdateCase c(seed);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index(), c.schedule(), &detail);
    const auto oracle = testing::oracle_memory(c.trace(), c.schedule());
    ASSERT_EQ(detail.requested, oracle.requested) << "seed " << seed;
    ASSERT_EQ(result.peak_requested, oracle.peak) << "seed " << seed;
    ASSERT_GE(oracle.lowest, 0) << "seed " << seed;
  }
}

TEST(HostUpdateOracle, TimeEqualsSteppingByNanoseconds) {
  int waits = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const HostUpdateCase c(seed);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index(), c.schedule(), &detail);
    const auto oracle = testing::oracle_time(c.index(), c.schedule());
    ASSERT_EQ(result.step_ns, oracle.step_ns) << "seed " << seed;
    ASSERT_EQ(result.compute_ns, oracle.compute_ns) << "seed " << seed;
    ASSERT_EQ(result.stall_ns, oracle.stall_ns) << "seed " << seed;
    ASSERT_EQ(detail.time, oracle.time) << "seed " << seed;
    ASSERT_EQ(detail.host_updates.size(), c.updates()) << "seed " << seed;
    for (const Stall& stall : result.stalls) waits += stall.is_update ? 1 : 0;
  }
  EXPECT_GT(waits, 50);
}

TEST(HostUpdateOracle, TheCheckAgreesOnDamagedSchedules) {
  int safe = 0;
  int unsafe = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const HostUpdateCase c(seed, static_cast<int>(2 + seed % 6));
    if (c.updates() == 0) continue;
    ASSERT_TRUE(testing::oracle_is_safe(c.trace(), c.schedule())) << "seed " << seed;
    for (std::uint64_t i = 0; i < 4; ++i) {
      std::mt19937_64 random(seed * 4 + i);
      Schedule schedule = c.schedule();
      const std::size_t at = random() % schedule.instructions.size();
      const EventId event = c.index().next_anchor(EventId(random() % c.index().event_count()));
      testing::move_instruction(c.index(), schedule, at,
                                {event, random() % 4 == 0 ? Side::before : Side::after});
      const auto hazards = find_hazards(c.index(), schedule);
      const auto unordered = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& h) {
        return h.kind != HazardKind::malformed;
      });
      ASSERT_EQ(unordered == hazards.end(), testing::oracle_is_safe(c.trace(), schedule))
          << "seed " << seed << " damage " << i << ": "
          << (unordered == hazards.end() ? "nothing found" : unordered->text);
      ++(unordered == hazards.end() ? safe : unsafe);
    }
  }
  EXPECT_GT(safe, 200);  // damage that does no harm
  EXPECT_GT(unsafe, 400);
}

}  // namespace
}  // namespace stowage::simulator
