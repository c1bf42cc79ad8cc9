// Random steps whose parameters stream, next to saved tensors that move: every lowering is free of
// hazards, the fast replay says what the slow oracles say, and damage is caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/simulator/oracle_streaming.h"
#include "tests/simulator/oracle_time.h"
#include "tests/support/micro_trace.h"

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
    automatic += !c.decisions.parameters.prefetch && !s.residencies.empty();
    resident += s.residencies.empty();
    std::vector<int> stays(s.parameters.size(), 0);
    std::vector<Place> load(s.residencies.size());
    std::vector<Place> await(s.residencies.size());
    std::vector<Place> store(s.residencies.size());
    for (const Residency& r : s.residencies) {
      wrapping += r.wraps;
      written += r.written;
      several += ++stays[r.parameter.index()] > 1;
    }
    for (const Instruction& i : s.instructions) {
      const Place place{i.anchor.event, i.anchor.side};
      if (i.action == Action::start_load) load[i.residency.index()] = place;
      if (i.action == Action::await_load) await[i.residency.index()] = place;
      if (i.action == Action::start_store) store[i.residency.index()] = place;
      if (i.action == Action::evict && s.residencies[i.residency.index()].written) {
        late_evicts += place > store[i.residency.index()];
      }
    }
    for (std::size_t r = 0; r < load.size(); ++r) {
      on_demand += load[r] == await[r];
      ahead += load[r] < await[r];
      awaited_before += await[r] < load[r];
    }
    for (const Stall& stall : replay(c.index, s).stalls) {
      stalls_at_end += stall.residency.valid() && stall.event.index() + 1 == c.trace.events.size();
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
    std::size_t copies = c.schedule.offloads.size() + c.schedule.reloads.size();
    for (const Reload& r : c.schedule.reloads) in += c.schedule.offloads[r.offload.index()].bytes;
    for (const Offload& o : c.schedule.offloads) out += o.bytes;
    for (const Residency& r : c.schedule.residencies) {
      const Bytes bytes = c.schedule.parameters[r.parameter.index()].bytes;
      in += bytes;
      out += r.written ? bytes : 0;
      copies += r.written ? 2 : 1;
    }
    ASSERT_EQ(result.h2d_bytes, in) << "seed " << seed;
    ASSERT_EQ(result.d2h_bytes, out) << "seed " << seed;
    ASSERT_EQ(detail.transfers.size(), copies) << "seed " << seed;
    for (const Stall& stall : result.stalls) {
      ASSERT_NE(stall.offload.valid(), stall.residency.valid()) << "seed " << seed;
    }
  }
}

// Instructions taken to other anchors, or away.
Schedule damaged(const StepIndex& index, Schedule s, std::uint64_t seed) {
  std::mt19937_64 engine(seed * 131 + 7);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < s.instructions.size(); ++i) {
    if (moves_parameter(s.instructions[i].action)) rows.push_back(i);
  }
  if (rows.empty()) return s;
  const std::size_t at = rows[engine() % rows.size()];
  Instruction moved = s.instructions[at];
  s.instructions.erase(s.instructions.begin() + static_cast<long>(at));
  if (engine() % 8 == 0) return s;
  const EventId event =
      index.next_anchor(EventId(static_cast<std::size_t>(engine() % index.event_count())));
  moved.anchor = index.anchor_at(event, engine() % 4 == 0 ? Side::before : Side::after);
  const auto place =
      std::find_if(s.instructions.begin(), s.instructions.end(), [&](const Instruction& other) {
        return Place{moved.anchor.event, moved.anchor.side} <
               Place{other.anchor.event, other.anchor.side};
      });
  s.instructions.insert(place, moved);
  return s;
}

TEST(StreamingOracle, TheCheckAgreesOnDamagedSchedules) {
  int safe = 0;
  int unsafe = 0;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const StreamingCase c(seed, static_cast<int>(2 + seed % 6));
    ASSERT_TRUE(testing::oracle_streams_safely(c.index, c.schedule)) << "seed " << seed;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const Schedule schedule = damaged(c.index, c.schedule, seed * 3 + i);
      const auto hazards = find_hazards(c.index, schedule);
      const auto unordered = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& h) {
        return h.kind != HazardKind::malformed;
      });
      ASSERT_EQ(unordered == hazards.end(), testing::oracle_streams_safely(c.index, schedule))
          << "seed " << seed << " damage " << i << ": "
          << (unordered == hazards.end() ? "nothing found" : unordered->text);
      ++(unordered == hazards.end() ? safe : unsafe);
    }
  }
  EXPECT_GT(safe, 300);  // damage that does no harm
  EXPECT_GT(unsafe, 800);
}

}  // namespace
}  // namespace stowage::simulator
