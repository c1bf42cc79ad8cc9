// planner/policies/tail_accumulation.cpp: which of the recorded counts it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/planner.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/support/head_in_parts.h"
#include "tests/support/or_throw.h"

namespace stowage::planner {
namespace {

using simulator::MicroBatchRule;
using simulator::StepIndex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::or_throw;
using testing::step_with_head;
using testing::with_parts;

PlanOutcome planned(const Trace& trace, const std::string& policy) {
  PlanRequest request;
  request.policy = policy;
  return or_throw(make_plan(StepIndex(trace), request));
}

std::string error_of(const Trace& trace, const std::string& policy) {
  const auto rules = policy_rules(StepIndex(trace), policy);
  return rules ? "" : rules.error().text();
}

// At once the head needs 1000 + 8000 bytes, in 2 parts 5000, in 4 parts 3000.
TEST(TailAccumulation, TakesTheCountWithTheLowestPeak) {
  const Trace trace =
      with_parts(step_with_head(8, 1), {step_with_head(8, 4), step_with_head(8, 2)});
  const PlanOutcome best = planned(trace, "tail_accumulation");
  EXPECT_THAT(best.plan.micro_batches, ElementsAre(MicroBatchRule{"head", 4}));
  EXPECT_THAT(best.notes, IsEmpty());
  EXPECT_EQ(best.predicted.peak_requested, 3000);
  EXPECT_EQ(best.predicted.step_ns, 6400);
  EXPECT_EQ(best.resident.peak_requested, 9000);
  EXPECT_EQ(best.plan.target, simulator::target_of(trace));
  EXPECT_LE(best.lower_bound_step, best.predicted.step_ns);
  EXPECT_LE(best.lower_bound_step, best.resident.step_ns) << "the step at once is a plan, too";
  // What is planned is what the plan gives back.
  const auto step = or_throw(simulator::unroll(trace, best.plan));
  EXPECT_EQ(&step.recording(), trace.divided[0].get());

  const PlanOutcome two = planned(trace, "tail_accumulation:parts=2");
  EXPECT_THAT(two.plan.micro_batches, ElementsAre(MicroBatchRule{"head", 2}));
  EXPECT_EQ(two.predicted.peak_requested, 5000);

  PlanRequest request;
  request.policy = "tail_accumulation";
  request.budget = 2999;
  const PlanOutcome over = or_throw(make_plan(StepIndex(trace), request));
  EXPECT_EQ(over.kind, PlanKind::policy_over_budget);
  request.budget = 3000;
  EXPECT_EQ(or_throw(make_plan(StepIndex(trace), request)).kind, PlanKind::planned);
}

// Recorded in parts that need as much as the whole.
TEST(TailAccumulation, SaysWhereThePeakLiesElsewhere) {
  Trace in_two = step_with_head(8, 1);
  testing::run_in("head", 2, in_two);
  const Trace trace = with_parts(step_with_head(8, 1), {in_two});
  const PlanOutcome outcome = planned(trace, "tail_accumulation");
  EXPECT_THAT(outcome.plan.micro_batches, ElementsAre(MicroBatchRule{"head", 2}));
  ASSERT_FALSE(outcome.notes.empty());
  EXPECT_THAT(outcome.notes.back(), HasSubstr("the peak lies elsewhere"));
}

TEST(TailAccumulation, AsksForARecordingOfTheTailInParts) {
  EXPECT_THAT(error_of(step_with_head(8, 1), "tail_accumulation"),
              HasSubstr("the step was not recorded with its tail in parts (stowage profile "
                        "--micro-batches"));
  Trace all_in_two = step_with_head(8, 1);
  testing::run_in("*", 2, all_in_two);
  const Trace trace = with_parts(step_with_head(8, 1), {all_in_two, step_with_head(8, 2)});
  EXPECT_EQ(error_of(trace, "tail_accumulation:segment=head"), "");
  EXPECT_THAT(error_of(trace, "tail_accumulation:segment=body,parts=4"),
              HasSubstr("not recorded with the tail from body in 4 parts (it was in head=2)"));
  EXPECT_THAT(error_of(trace, "tail_accumulation:parts=1"), HasSubstr("option parts"));
}

}  // namespace
}  // namespace stowage::planner
