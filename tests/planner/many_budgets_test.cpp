// One process plans for many budgets from one index of the step: nothing of a question stays behind
// in it.
#include <gtest/gtest.h>

#include "planner/planner.h"
#include "simulator/plan/plan_json.h"
#include "tests/support/micro_trace.h"
#include "tests/support/slowdown.h"

namespace stowage::planner {
namespace {

TEST(ManyBudgets, TenOfOneIndexAreThoseOfTenIndexes) {
  constexpr int kBudgets = 10;
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 12; seed += testing::stride()) {
    SCOPED_TRACE(seed);
    const Trace trace = testing::random_trace(seed, {14, seed % 2 == 1, false, 4, true});
    const simulator::StepIndex shared(trace);
    const Bytes peak = simulator::replay(shared, simulator::resident_schedule(shared)).peak_active;
    for (int i = 0; i < kBudgets; ++i) {
      PlanRequest request;
      request.budget = std::max<Bytes>(peak - peak / (2 * kBudgets) * i, 1);
      const auto again = make_plan(shared, request);
      const simulator::StepIndex own(trace);
      const auto fresh = make_plan(own, request);
      ASSERT_TRUE(again.ok() && fresh.ok());
      ASSERT_EQ(again->kind, fresh->kind);
      ASSERT_EQ(simulator::plan_to_json(again->plan), simulator::plan_to_json(fresh->plan));
      ASSERT_EQ(again->lower_bound_step, fresh->lower_bound_step);
      ASSERT_EQ(again->predicted.step_ns, fresh->predicted.step_ns);
      moved += again->kind == PlanKind::planned ? 1 : 0;
    }
  }
  EXPECT_GT(moved, 20 / testing::stride());
}

}  // namespace
}  // namespace stowage::planner
