// Gradients that leave in what `auto` answers.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "planner/plan_as_recorded.h"
#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"

namespace stowage::planner {
namespace {

using simulator::StepIndex;

PlanOutcome planned(const StepIndex& index, Bytes budget, bool gradients) {
  PlanRequest request;
  request.budget = budget;
  request.budget_on = simulator::PeakKind::requested;
  request.allowed.gradients = gradients;
  request.allowed.optimizer = false;  // nor updates on the host, which is another step
  auto outcome = make_plan(index, request);
  EXPECT_TRUE(outcome.ok()) << (outcome ? "" : outcome.error().text());
  return std::move(outcome).value();
}

// No answer is slower, none is lost, floor and bound are no higher, and what is predicted is what
// the plan gives.
TEST(GradientsInPlans, MakeNoneSlower) {
  int compared = 0, faster = 0, more = 0, used = 0;
  for (std::uint64_t seed = 1; seed <= 45; ++seed) {
    testing::RandomTraceOptions options;
    options.ops = 4 + static_cast<int>(seed % 8);
    options.parameters = true;
    const Trace trace = testing::random_trace(seed, options);
    const StepIndex index(trace);
    if (!has_gradients(index)) continue;
    const Bytes resident =
        simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
    for (const int percent : {95, 85, 75, 65, 55}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " " + std::to_string(percent) + " %");
      const PlanOutcome with = planned(index, resident * percent / 100, true);
      const PlanOutcome without = planned(index, resident * percent / 100, false);
      ++compared;
      EXPECT_TRUE(without.plan.gradients.empty());
      EXPECT_LE(with.floor.bytes, without.floor.bytes);
      EXPECT_LE(with.kept_from, without.kept_from);
      if (!with.feasible()) {
        EXPECT_FALSE(without.feasible());
        continue;
      }
      EXPECT_LE(with.lower_bound_step, with.predicted.step_ns);
      used += with.plan.gradients.empty() ? 0 : 1;
      const auto lowered = simulator::lower(index, with.plan);
      if (with.plan.recompute.empty()) {
        ASSERT_TRUE(lowered.ok()) << lowered.error().text();
        EXPECT_EQ(simulator::replay(index, lowered->schedule).step_ns, with.predicted.step_ns);
      }
      if (!without.feasible()) {
        ++more;
        continue;
      }
      EXPECT_LE(with.predicted.step_ns, without.predicted.step_ns);
      faster += with.predicted.step_ns < without.predicted.step_ns ? 1 : 0;
    }
  }
  std::cout << "of " << compared << " budgets " << more << " more are kept, " << faster
            << " are kept faster, " << used << " with gradients on the host\n";
  EXPECT_GT(more, 5);
  EXPECT_GT(faster, 5);
}

// What cannot leave nobody need hear of.
TEST(GradientsInPlans, AreNotSpokenOfWhereThereAreNone) {
  const Trace trace = testing::two_offloadable(400, 800);
  const StepIndex index(trace);
  EXPECT_FALSE(has_gradients(index));
  const PlanOutcome outcome = planned(index, 100, false);
  EXPECT_EQ(outcome.allowed.text(), "");
}

}  // namespace
}  // namespace stowage::planner
