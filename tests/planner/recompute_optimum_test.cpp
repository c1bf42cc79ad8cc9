// `auto` with recompute against every plan of small steps: each set of layers that run again, each
// set of tensors that ops make again, each set of storages that leave, with points at once, on
// demand, and automatic.
//
// STOWAGE_RANDOM_CASES (40) says how many steps; the seed of one that fails is printed, and
// STOWAGE_RANDOM_SEED begins there. `ctest -C full -L full` runs 500.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/planner/every_plan.h"
#include "tests/support/random_chain.h"
#include "traces/validate.h"

namespace stowage::planner {
namespace {

using simulator::PeakKind;
using simulator::StepIndex;

constexpr int kLayers = 3;

std::uint64_t setting(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Tally {
  std::int64_t budgets = 0;
  std::int64_t near = 0;  // within 1 % of the optimum
  std::int64_t recomputes = 0;
  std::int64_t by_ops = 0;
  std::int64_t mixes = 0;  // recompute and offload in one plan
  std::int64_t plans = 0;
};

void check_budget(const Trace& trace, const EveryPlan& every, std::size_t row, Bytes budget,
                  Tally& tally) {
  const StepIndex index(trace);
  PlanRequest request;
  request.budget = budget;
  request.budget_on = PeakKind::requested;
  const auto outcome = make_plan(index, request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_LE(outcome->floor.bytes, every.lowest_peak());
  const Nanoseconds optimum = every.shortest(row);
  if (outcome->floor.bytes > budget) {
    EXPECT_EQ(optimum, EveryPlan::kNone) << "a plan within a budget below the floor";
    return;
  }
  EXPECT_LE(outcome->lower_bound_step, optimum);
  if (!outcome->feasible()) {
    EXPECT_EQ(outcome->kind, PlanKind::not_found);
    EXPECT_EQ(optimum, EveryPlan::kNone);
    return;
  }
  EXPECT_LE(outcome->predicted.peak_requested, budget);
  EXPECT_GE(outcome->predicted.step_ns, outcome->lower_bound_step);
  ASSERT_NE(optimum, EveryPlan::kNone);
  ++tally.budgets;
  tally.near += outcome->predicted.step_ns <= optimum + optimum / 100;
  const auto structure = simulator::structure_of(trace, outcome->plan);
  ASSERT_TRUE(structure.ok());
  tally.recomputes += !structure->recompute.empty();
  tally.by_ops += !structure->ops.empty();
  tally.mixes += structure->runs_again() && outcome->predicted.d2h_bytes > 0;
  // The file of it is that plan.
  const auto step = simulator::unroll(trace, outcome->plan);
  ASSERT_TRUE(step.ok()) << step.error().text();
  const StepIndex planned(*step);
  const auto lowered = simulator::lower(planned, outcome->plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  EXPECT_EQ(simulator::replay(planned, lowered->schedule).step_ns, outcome->predicted.step_ns);
}

TEST(RecomputeOptimum, AutoIsNearItAndNoBoundIsAboveIt) {
  const std::uint64_t cases = setting("STOWAGE_RANDOM_CASES", 40);
  const std::uint64_t first = setting("STOWAGE_RANDOM_SEED", 1);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    SCOPED_TRACE("STOWAGE_RANDOM_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    Trace trace = testing::random_chain(random, kLayers, testing::ChainOps::alone_too);
    disturb(random, trace.calibration);
    const Status valid = validate(trace, "chain");
    ASSERT_TRUE(valid.ok()) << valid.error().text();
    const StepIndex index(trace);
    const Bytes resident =
        simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
    const std::vector<Bytes> budgets = {resident * 9 / 10, resident * 3 / 4, resident * 6 / 10,
                                        resident / 2};
    const EveryPlan every(trace, kLayers, budgets);
    if (::testing::Test::HasFatalFailure()) return;
    tally.plans += every.plans();
    for (std::size_t b = 0; b < budgets.size(); ++b) {
      check_budget(trace, every, b, budgets[b], tally);
      if (::testing::Test::HasFailure()) return;
    }
  }
  std::cout << "seeds " << first << " to " << first + cases - 1 << ": " << tally.plans
            << " plans; of " << tally.budgets << " budgets " << tally.near
            << " within 1 % of the optimum, " << tally.recomputes << " with layers that run again, "
            << tally.by_ops << " with ops that do, " << tally.mixes << " with offload beside it\n";
  EXPECT_GE(tally.near * 100, tally.budgets * 95);
  EXPECT_GT(tally.recomputes, 0);
  EXPECT_GT(tally.by_ops, 0);
  EXPECT_GT(tally.mixes, 0);
}

}  // namespace
}  // namespace stowage::planner
