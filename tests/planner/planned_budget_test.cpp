// Budgets on what is reserved go by planned memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "planner/budget.h"
#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/placement.h"
#include "simulator/placement/planned_memory.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/step_index.h"
#include "tests/support/micro_trace.h"
#include "tests/support/slowdown.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

using simulator::PeakKind;
using simulator::PlacementMode;
using simulator::ReplayResult;
using simulator::StepIndex;

PlanOutcome planned_for(const StepIndex& index, Bytes budget, PeakKind on) {
  PlanRequest request;
  request.budget = budget;
  request.budget_on = on;
  request.placement = PlacementMode::planned;
  auto outcome = make_plan(index, request);
  EXPECT_TRUE(outcome.ok()) << (outcome ? "" : outcome.error().text());
  return std::move(outcome).value();
}

// What the outcome says of planned memory is what its plan takes, to the page.
void expect_exact(const StepIndex& recorded, const PlanOutcome& outcome) {
  EXPECT_EQ(outcome.plan.placement, PlacementMode::planned);
  const auto step = simulator::unroll(recorded.step().recording(), outcome.plan);
  ASSERT_TRUE(step.ok());
  const StepIndex index(*step);
  const auto lowering = simulator::lower(index, outcome.plan);
  ASSERT_TRUE(lowering.ok());
  const simulator::PlannedMemory memory = simulator::planned_memory(index, lowering->schedule);
  EXPECT_EQ(outcome.predicted.peak_reserved, memory.placement.bytes());
  EXPECT_EQ(outcome.predicted.peak_active, memory.placement.lower_bound);
  EXPECT_LE(outcome.predicted.peak_requested, outcome.predicted.peak_active);
}

TEST(PlannedBudget, IsKeptToThePageAndMoreIsNeverSlower) {
  int cases = 0;
  int planned = 0;
  int not_found = 0;
  for (std::uint64_t seed = 1; seed <= 40; seed += testing::stride()) {
    testing::RandomTraceOptions options;
    options.ops = 6 + static_cast<int>(seed % 15);
    options.device_times = true;
    options.setup = true;
    options.parameters = seed % 2 == 0;
    options.unit = Bytes{1} << (seed % 3 == 0 ? 14 : 17);  // up to 3 MB, 26 MB
    const Trace trace = testing::random_trace(seed, options);
    const StepIndex index(trace);
    const ReplayResult resident =
        simulator::replay(index, simulator::resident_schedule(index, PlacementMode::planned));
    for (const PeakKind on : {PeakKind::active, PeakKind::reserved}) {
      Nanoseconds before = -1;
      for (int part = 20; part <= 40; part += 4) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " part " + std::to_string(part) + " on " +
                     simulator::name_of(on));
        const Bytes budget = peak_of(resident, on) * part / 40;
        const PlanOutcome outcome = planned_for(index, budget, on);
        ++cases;
        if (!outcome.feasible()) {
          if (outcome.kind == PlanKind::not_found) {
            ++not_found;
          } else {
            const Bytes page = on == PeakKind::reserved ? simulator::kDevicePage : 1;
            ASSERT_GT((outcome.floor.bytes + page - 1) / page * page, budget);
          }
          ASSERT_LT(before, 0) << "what was feasible with less is feasible";
          ASSERT_GT(outcome.kept_from, budget);
          ASSERT_TRUE(planned_for(index, outcome.kept_from, on).feasible());
          continue;
        }
        ++planned;
        ASSERT_LE(peak_of(outcome.predicted, on), budget);
        ASSERT_LE(outcome.floor.bytes, budget);
        expect_exact(index, outcome);
        if (before >= 0) {
          ASSERT_LE(outcome.predicted.step_ns, before);
        }
        before = outcome.predicted.step_ns;
      }
    }
  }
  std::cout << "seeds 1 to 40 by " << testing::stride() << ": " << planned << " of " << cases
            << " planned, " << not_found << " not found\n";
  EXPECT_GE(planned, testing::stride() == 1 ? 276 : 54);
  // Proven or found is every other one; they come in clusters, a step's budgets beside each other.
  EXPECT_LE(not_found, 11);
}

// A card of a size holds what is alive in 98 % of it; on these samples no slower (it is not so in
// general: docs/planner.md, "Monotone").
class PlannedBudgetOf : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto loaded = load_trace(std::string(STOWAGE_SOURCE_DIR "/traces/samples/") + GetParam() +
                             ".trace.json.gz");
    ASSERT_TRUE(loaded.ok());
    trace_ = std::move(loaded->trace);
  }

  Trace trace_;
};

TEST_P(PlannedBudgetOf, IsNoSlowerThanAnActiveOneOf98Percent) {
  const StepIndex index(trace_);
  const ReplayResult resident =
      simulator::replay(index, simulator::resident_schedule(index, PlacementMode::planned));
  const Bytes floor = planned_for(index, 1, PeakKind::active).floor.bytes;
  int found = 0;
  std::vector<Bytes> budgets = {resident.peak_reserved / 100 * 73, floor + floor / 9};
  if (testing::stride() == 1) budgets.push_back(floor + floor / 30);
  for (const Bytes budget : budgets) {
    SCOPED_TRACE(budget);
    const PlanOutcome smaller = planned_for(index, budget / 50 * 49, PeakKind::active);
    if (!smaller.feasible()) continue;
    const PlanOutcome outcome = planned_for(index, budget, PeakKind::reserved);
    EXPECT_TRUE(outcome.feasible()) << name_of(outcome.kind);
    EXPECT_LE(outcome.predicted.peak_reserved, budget);
    EXPECT_LE(outcome.predicted.step_ns, smaller.predicted.step_ns);
    expect_exact(index, outcome);
    ++found;
  }
  EXPECT_GE(found, 2);
}

INSTANTIATE_TEST_SUITE_P(Samples, PlannedBudgetOf,
                         ::testing::Values("mlp-l6-fp32-h200", "gpt2-fp32-h200",
                                           "resnet50-fp32-h200",
                                           "llama3-8b-l9-fp32-efficient-h200"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Where nobody says another: a user means the card.
TEST(PlannedBudget, IsTheUsualOneOfAGpu) {
  testing::RandomTraceOptions options;
  const Trace cpu = testing::random_trace(1, options);
  options.device_times = options.setup = true;
  const Trace gpu = testing::random_trace(1, options);
  EXPECT_EQ(usual_placement(cpu), PlacementMode::caching);
  EXPECT_EQ(usual_counter(cpu, PlacementMode::planned), PeakKind::active);
  EXPECT_EQ(usual_placement(gpu), PlacementMode::planned);
  EXPECT_EQ(usual_counter(gpu, PlacementMode::planned), PeakKind::reserved);
  EXPECT_EQ(usual_counter(gpu, PlacementMode::caching), PeakKind::active);
}

}  // namespace
}  // namespace stowage::planner
