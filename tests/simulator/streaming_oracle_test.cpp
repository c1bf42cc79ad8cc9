// Random steps whose parameters stream, next to saved tensors that move: every lowering is free of
// hazards, the fast replay says what the slow oracles say, and damage is caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/simulator/oracle_time.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_damage.h"
#include "tests/support/schedule_parts.h"

namespace stowage::simulator {
namespace {

struct StreamingCase {
  Trace trace;
  StepIndex index;
  Decisions decisions;
  Schedule schedule;
  explicit StreamingCase(std::uint64_t seed, int ops = 0)
      : trace(testing::random_trace(seed, {ops > 0 ? ops : static_cast<int>(4 + seed % 14),
                                           seed % 2 == 1, false, 4, true})),
        index(trace),
        decisions(testing::random_decisions(trace, seed)) {
    decisions.parameters = testing::random_shards(trace, seed);
    decisions.optimizer = testing::random_state(trace, seed);
    decisions.gradients = testing::random_gradients(trace, seed);
    const auto lowered = lower(index, decisions);
    EXPECT_TRUE(lowered.ok()) << seed;
    if (lowered) schedule = lowered->schedule;
  }
};

// The cases are worth something only if they hold what can go wrong.
TEST(StreamingOracle, RandomCasesCoverTheGround) {
  int wrapping = 0, written = 0, several = 0, on_demand = 0, ahead = 0, awaited_before = 0;
  int late_evicts = 0, stalls_at_end = 0, resident = 0, automatic = 0;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const StreamingCase c(seed);
    const Schedule& s = c.schedule;
    automatic += !c.decisions.parameters.prefetch && !testing::parameters(s).empty();
    resident += testing::parameters(s).empty();
    std::vector<int> stays(s.tenants.size(), 0);
    std::vector<Place> load(s.stays.size());
    std::vector<Place> await(s.stays.size());
    std::vector<Place> store(s.stays.size());
    const std::vector<StayId> of_parameters = testing::parameter_stays(s);
    for (const StayId id : of_parameters) {
      const Stay& stay = s.stays[id.index()];
      wrapping += stay.wraps;
      written += stay.is_stored;
      several += ++stays[stay.tenant.index()] > 1;
    }
    for (const Instruction& i : s.instructions) {
      const Place place{i.anchor.event, i.anchor.side};
      if (!s.tenant(i.stay).has_own_home) continue;
      if (i.action == Action::load) load[i.stay.index()] = place;
      if (i.action == Action::await) await[i.stay.index()] = place;
      if (i.action == Action::store) store[i.stay.index()] = place;
      if (i.action == Action::evict && s.stays[i.stay.index()].is_stored) {
        late_evicts += place > store[i.stay.index()];
      }
    }
    for (const StayId id : of_parameters) {
      const std::size_t r = id.index();
      on_demand += load[r] == await[r];
      ahead += load[r] < await[r];
      awaited_before += await[r] < load[r];
    }
    for (const Stall& stall : replay(c.index, s).stalls) {
      stalls_at_end +=
          s.tenant(stall.stay).has_own_home && stall.event.index() + 1 == c.trace.events.size();
    }
  }
  const std::pair<const char*, int> counts[] = {{"wrapping", wrapping},
                                                {"written", written},
                                                {"several", several},
                                                {"on demand", on_demand},
                                                {"ahead", ahead},
                                                {"awaited before", awaited_before},
                                                {"late evicts", late_evicts},
                                                {"stalls at the end", stalls_at_end},
                                                {"all resident", resident},
                                                {"automatic", automatic}};
  for (const auto& [what, count] : counts) EXPECT_GE(count, 20) << what;
}

TEST(StreamingOracle, NoHazards) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const StreamingCase c(seed);
    const auto hazards = find_hazards(c.index, c.schedule);
    ASSERT_TRUE(hazards.empty()) << "seed " << seed << ": " << hazards.front().text;
  }
}

TEST(StreamingOracle, MemoryEqualsTheLiveSetAtEveryEvent) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const StreamingCase c(seed);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index, c.schedule, &detail);
    const auto oracle = testing::oracle_memory(c.trace, c.schedule);
    ASSERT_EQ(detail.requested, oracle.requested) << "seed " << seed;
    ASSERT_EQ(result.peak_requested, oracle.peak) << "seed " << seed;
    ASSERT_EQ(result.peak_event, oracle.peak_event) << "seed " << seed;
    ASSERT_GE(oracle.lowest, 0) << "seed " << seed;
  }
}

TEST(StreamingOracle, TimeEqualsSteppingByNanoseconds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const StreamingCase c(seed);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index, c.schedule, &detail);
    const auto oracle = testing::oracle_time(c.index, c.schedule);
    ASSERT_EQ(result.step_ns, oracle.step_ns) << "seed " << seed;
    ASSERT_EQ(result.compute_ns, oracle.compute_ns) << "seed " << seed;
    ASSERT_EQ(result.stall_ns, oracle.stall_ns) << "seed " << seed;
    ASSERT_EQ(detail.time, oracle.time) << "seed " << seed;
  }
}

TEST(StreamingOracle, EveryByteIsCounted) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const StreamingCase c(seed);
    ReplayDetail detail;
    const ReplayResult result = replay(c.index, c.schedule, &detail);
    Bytes in = 0;
    Bytes out = 0;
    std::size_t copies = 0;
    for (std::size_t s = 0; s < c.schedule.stays.size(); ++s) {
      const Stay& stay = c.schedule.stays[s];
      const Bytes bytes = c.schedule.tenant(StayId(s)).bytes;
      in += stay.is_made ? 0 : bytes;
      out += stay.is_stored ? bytes : 0;
      copies += (stay.is_made ? 0 : 1) + (stay.is_stored ? 1 : 0);
    }
    ASSERT_EQ(result.h2d_bytes, in) << "seed " << seed;
    ASSERT_EQ(result.d2h_bytes, out) << "seed " << seed;
    ASSERT_EQ(detail.transfers.size(), copies) << "seed " << seed;
    for (const Stall& stall : result.stalls) {
      ASSERT_TRUE(stall.stay.valid()) << "seed " << seed;
    }
  }
}

// Instructions taken to other anchors, or away.
Schedule damaged(const StepIndex& index, Schedule s, std::uint64_t seed) {
  std::mt19937_64 engine(seed * 131 + 7);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < s.instructions.size(); ++i) {
    if (s.tenant(s.instructions[i].stay).has_own_home) rows.push_back(i);
  }
  if (rows.empty()) return s;
  const std::size_t at = rows[engine() % rows.size()];
  if (engine() % 8 == 0) {
    s.instructions.erase(s.instructions.begin() + static_cast<long>(at));
    return s;
  }
  const EventId event =
      index.next_anchor(EventId(static_cast<std::size_t>(engine() % index.event_count())));
  testing::move_instruction(index, s, at, {event, engine() % 4 == 0 ? Side::before : Side::after});
  return s;
}

TEST(StreamingOracle, TheCheckAgreesOnDamagedSchedules) {
  int safe = 0;
  int unsafe = 0;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const StreamingCase c(seed, static_cast<int>(2 + seed % 6));
    ASSERT_TRUE(testing::oracle_is_safe(c.trace, c.schedule)) << "seed " << seed;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const Schedule schedule = damaged(c.index, c.schedule, seed * 3 + i);
      const auto hazards = find_hazards(c.index, schedule);
      const auto unordered = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& h) {
        return h.kind != HazardKind::malformed;
      });
      ASSERT_EQ(unordered == hazards.end(), testing::oracle_is_safe(c.trace, schedule))
          << "seed " << seed << " damage " << i << ": "
          << (unordered == hazards.end() ? "nothing found" : unordered->text);
      ++(unordered == hazards.end() ? safe : unsafe);
    }
  }
  EXPECT_GT(safe, 300);  // damage that does no harm
  EXPECT_GT(unsafe, 800);
}

bool has_its_home_alone(const Schedule& s) {
  for (const Tenant& home : s.tenants) {
    for (const Tenant& other : s.tenants) {
      if (!home.has_own_home || &home == &other) continue;
      if (std::max(home.host_offset, other.host_offset) <
          std::min(home.host_offset + home.bytes, other.host_offset + other.bytes)) {
        return false;
      }
    }
  }
  return true;
}

// Parameters and saved tensors in one schedule, damage to anything in it. Homes that overlap are
// malformed, whatever is copied in which order.
TEST(StreamingOracle, TheCheckAgreesOnDamagedSchedulesOfAllKinds) {
  int safe = 0, unsafe = 0, mixed = 0, overlapping = 0;
  for (std::uint64_t seed = 2000; seed < 4000; ++seed) {
    const StreamingCase c(seed, static_cast<int>(2 + seed % 6));
    const std::size_t streamed = testing::parameters(c.schedule).size();
    mixed += streamed > 0 && streamed < c.schedule.tenants.size();
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Schedule schedule =
          testing::ScheduleDamage(c.index, c.schedule, seed * 4 + i).run_on_all();
      const auto hazards = find_hazards(c.index, schedule);
      const auto unordered = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& h) {
        return h.kind != HazardKind::malformed;
      });
      const bool is_safe = testing::oracle_is_safe(c.trace, schedule);
      if (!has_its_home_alone(schedule)) {
        ++overlapping;
        ASSERT_FALSE(hazards.empty()) << "seed " << seed << " damage " << i;
        ASSERT_TRUE(unordered == hazards.end() || !is_safe) << "seed " << seed << " damage " << i;
        continue;
      }
      ASSERT_EQ(unordered == hazards.end(), is_safe)
          << "seed " << seed << " damage " << i << ": "
          << (unordered == hazards.end() ? "nothing found" : unordered->text);
      ++(is_safe ? safe : unsafe);
    }
  }
  EXPECT_GT(mixed, 1000);
  EXPECT_GT(overlapping, 800);
  EXPECT_GT(safe, 2000);  // damage that does no harm
  EXPECT_GT(unsafe, 2000);
}

}  // namespace
}  // namespace stowage::simulator
