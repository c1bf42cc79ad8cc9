// Plans of a step that was recorded in micro-batches, too: the best of all recordings, with the
// bound and the floor of all, and a file that gives the same step back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "planner/plan_as_recorded.h"
#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/support/head_in_parts.h"
#include "tests/support/micro_trace.h"
#include "tests/support/or_throw.h"

namespace stowage::planner {
namespace {

using simulator::StepIndex;
using testing::or_throw;
using testing::run_in;
using testing::step_with_head;
using testing::with_parts;

PlanRequest within(Bytes budget) {
  PlanRequest request;
  request.budget = budget;
  return request;
}

// By hand: at once the head needs 1000 + 8000 bytes, in 2 parts 5000, in 4 parts 3000; each part
// more takes 300 ns.
TEST(MicroBatches, AreTakenWhereTheHeadIsTooLarge) {
  const Trace trace =
      with_parts(step_with_head(8, 1), {step_with_head(8, 2), step_with_head(8, 4)});
  const StepIndex index(trace);
  const auto check = [&](Bytes budget, std::int32_t parts, Nanoseconds step) {
    SCOPED_TRACE(budget);
    const PlanOutcome outcome = or_throw(make_plan(index, within(budget)));
    ASSERT_TRUE(outcome.feasible());
    EXPECT_EQ(outcome.kind, parts == 1 ? PlanKind::fits_already : PlanKind::planned);
    EXPECT_EQ(outcome.predicted.step_ns, step);
    EXPECT_LE(outcome.predicted.peak_requested, budget);
    EXPECT_LE(outcome.lower_bound_step, step);
    EXPECT_EQ(outcome.resident.peak_requested, 9000);
    EXPECT_EQ(outcome.plan.target, simulator::target_of(trace));
    if (parts == 1) {
      EXPECT_TRUE(outcome.plan.micro_batches.empty());
    } else {
      ASSERT_EQ(outcome.plan.micro_batches.size(), 1u);
      EXPECT_EQ(outcome.plan.micro_batches[0], (simulator::MicroBatchRule{"head", parts}));
      EXPECT_NE(outcome.notes[0].find("head in " + std::to_string(parts) + " parts"),
                std::string::npos);
    }
  };
  check(9000, 1, 5500);
  check(8999, 2, 5800);
  check(5000, 2, 5800);
  check(4999, 4, 6400);
  check(3000, 4, 6400);
}

// By hand as above: in 4 parts 3000 bytes and 6400 ns, also where less would do; at once 9000.
TEST(MicroBatches, ThatArePinnedAreThose) {
  const Trace trace =
      with_parts(step_with_head(8, 1), {step_with_head(8, 2), step_with_head(8, 4)});
  const StepIndex index(trace);
  PlanRequest request = within(9000);
  request.pins.micro_batches = {{"head", 4}};
  const PlanOutcome four = or_throw(make_plan(index, request));
  EXPECT_EQ(four.kind, PlanKind::planned);
  EXPECT_EQ(four.pinned, 1);
  EXPECT_EQ(four.plan.micro_batches, request.pins.micro_batches);
  EXPECT_EQ(four.predicted.step_ns, 6400);
  EXPECT_EQ(four.predicted.peak_requested, 3000);
  EXPECT_EQ(four.floor.bytes, 3000);
  EXPECT_EQ(four.resident.peak_requested, 9000);
  EXPECT_EQ(four.plan.target, simulator::target_of(trace));
  request.budget = 5000;
  request.pins.micro_batches = {{"head", 1}};
  const PlanOutcome at_once = or_throw(make_plan(index, request));
  EXPECT_FALSE(at_once.feasible());
  EXPECT_EQ(at_once.floor.bytes, 9000);
  request.pins.micro_batches = {{"head", 3}};
  const auto unknown = make_plan(index, request);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().pointer, "/micro_batches");
}

// A recording in which what is pinned is not there is none for the plan.
TEST(MicroBatches, InWhichWhatIsPinnedIsNotThereAreLeftOut) {
  PlanRequest request = within(5000);
  request.pins.saved.emplace_back();
  request.pins.saved.back().site = "body#0";
  const Trace trace = with_parts(step_with_head(8, 1), {step_with_head(8, 4)});
  EXPECT_EQ(or_throw(make_plan(StepIndex(trace), request)).plan.micro_batches.size(), 1U);
  Trace other = step_with_head(8, 4);
  for (std::string& text : other.strings) {
    if (text == "body" || text == "body#0") text.replace(0, 4, "core");
  }
  const Trace without = with_parts(step_with_head(8, 1), {other});
  const PlanOutcome at_once = or_throw(make_plan(StepIndex(without), request));
  EXPECT_FALSE(at_once.feasible());
  EXPECT_EQ(at_once.floor.bytes, 9000);
}

TEST(MicroBatches, AreNotTakenWhereTheyAreNotAllowed) {
  const Trace trace = with_parts(step_with_head(8, 1), {step_with_head(8, 4)});
  const StepIndex index(trace);
  PlanRequest request = within(5000);
  request.allowed.micro_batches = false;
  const PlanOutcome without = or_throw(make_plan(index, request));
  EXPECT_EQ(without.kind, PlanKind::offload_cannot_help);
  EXPECT_EQ(without.floor.bytes, 9000);
  EXPECT_EQ(without.allowed.text(), "offload and recompute and params");
  // Where there are none they are no matter.
  const Trace alone = step_with_head(8, 1);
  const StepIndex of_alone(alone);
  EXPECT_EQ(or_throw(make_plan(of_alone, request)).allowed.text(), "");
  request.allowed = {.recompute = false, .parameters = false, .optimizer = false};
  EXPECT_EQ(or_throw(make_plan(of_alone, request)).allowed.text(), "offload");
}

TEST(MicroBatches, TheFloorIsTheLowestOfAll) {
  const Trace trace =
      with_parts(step_with_head(8, 1), {step_with_head(8, 2), step_with_head(8, 4)});
  const StepIndex index(trace);
  const PlanOutcome outcome = or_throw(make_plan(index, within(2999)));
  EXPECT_EQ(outcome.kind, PlanKind::infeasible);
  EXPECT_EQ(outcome.floor.bytes, 3000);
  EXPECT_EQ(outcome.kept_from, 3000);
  EXPECT_TRUE(outcome.floor.reached);
  EXPECT_EQ(outcome.predicted.peak_requested, 3000);
  EXPECT_TRUE(or_throw(make_plan(index, within(3000))).feasible());
}

// What is proven needs no search.
TEST(MicroBatches, AStoppedSearchKnowsFloorAndBoundOfAll) {
  const Trace trace =
      with_parts(step_with_head(8, 1), {step_with_head(8, 2), step_with_head(8, 4)});
  const StepIndex index(trace);
  std::stop_source stop;
  stop.request_stop();
  for (const Bytes budget : {2999, 4000, 8999}) {
    SCOPED_TRACE(budget);
    const PlanOutcome whole = or_throw(make_plan(index, within(budget)));
    PlanRequest request = within(budget);
    request.stop = stop.get_token();
    const PlanOutcome stopped = or_throw(make_plan(index, request));
    EXPECT_EQ(stopped.floor.bytes, 3000);
    EXPECT_EQ(stopped.lower_bound_step, whole.lower_bound_step);
    EXPECT_EQ(stopped.kept_from, 3000);
    // Nothing has to be searched for where the parts alone are enough.
    EXPECT_EQ(stopped.feasible(), budget >= 3000);
    request = within(budget);
    request.max_evaluations = 1;
    EXPECT_EQ(or_throw(make_plan(index, request)).floor.bytes, 3000);
  }
}

TEST(MicroBatches, AStepThatFitsStaysAsItIsAndKnowsTheBoundOfAll) {
  Trace faster = step_with_head(8, 2);
  for (Nanoseconds& time : faster.events.time) time /= 2;
  const Nanoseconds least =
      simulator::replay(StepIndex(faster), simulator::resident_schedule(StepIndex(faster))).step_ns;
  const Trace trace = with_parts(step_with_head(8, 1), {std::move(faster)});
  const StepIndex index(trace);
  const PlanOutcome outcome = or_throw(make_plan(index, within(9000)));
  EXPECT_EQ(outcome.kind, PlanKind::fits_already);
  EXPECT_TRUE(outcome.plan.micro_batches.empty());
  EXPECT_LE(outcome.lower_bound_step, least);
  EXPECT_GT(outcome.gap_ppm, 0);
  EXPECT_EQ(outcome.floor.bytes, 5000);
  EXPECT_EQ(outcome.kept_from, 5000);
}

TEST(MicroBatches, KeepTheHostBudget) {
  const Trace trace = with_parts(step_with_head(8, 1), {step_with_head(8, 2)});
  const StepIndex index(trace);
  PlanRequest request = within(5000);
  request.host_budget = 1;
  const PlanOutcome outcome = or_throw(make_plan(index, request));
  ASSERT_TRUE(outcome.feasible());
  EXPECT_EQ(outcome.predicted.host_bytes, 0);
}

std::optional<Nanoseconds> step_of(const PlanOutcome& outcome) {
  return outcome.feasible() ? std::optional(outcome.predicted.step_ns) : std::nullopt;
}

TEST(MicroBatches, TheBestOfAllRecordingsOnRandomSteps) {
  int divided = 0;
  int whole = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Trace first = testing::random_trace(seed);
    Trace second = testing::random_trace(seed + 1000);
    run_in("head", 2, second);
    const Trace trace = with_parts(std::move(first), {std::move(second)});
    const StepIndex index(trace);
    const StepIndex in_parts(*trace.divided[0]);
    const Bytes resident = or_throw(make_plan(index, within(1))).resident.peak_active;
    std::optional<Nanoseconds> in_less;
    for (const Bytes percent : {40, 60, 80, 95}) {
      const Bytes budget = std::max<Bytes>(resident * percent / 100, 1);
      const PlanOutcome one = or_throw(plan_as_recorded(index, within(budget)));
      const PlanOutcome other = or_throw(plan_as_recorded(in_parts, within(budget)));
      const PlanOutcome both = or_throw(make_plan(index, within(budget)));
      std::optional<Nanoseconds> best = step_of(one);
      if (step_of(other) && (!best || *step_of(other) < *best)) best = step_of(other);
      ASSERT_EQ(step_of(both), best);
      // Where no plan of one is within the budget its bound is of nothing.
      bool is_possible = false;
      for (const PlanOutcome* each : {&one, &other}) {
        const bool is_proven_not =
            each->kind == PlanKind::infeasible || each->kind == PlanKind::offload_cannot_help;
        if (is_proven_not) continue;
        is_possible = true;
        EXPECT_LE(both.lower_bound_step, each->lower_bound_step);
      }
      EXPECT_EQ(is_possible,
                both.kind != PlanKind::infeasible && both.kind != PlanKind::offload_cannot_help);
      if (step_of(both)) {
        EXPECT_LE(both.lower_bound_step, *step_of(both));
      }
      EXPECT_LE(both.floor.bytes, std::min(one.floor.bytes, other.floor.bytes));
      if (in_less) {
        ASSERT_TRUE(best) << "less memory was enough";
        EXPECT_LE(*best, *in_less);
      }
      in_less = best;
      if (!best) continue;
      (both.plan.micro_batches.empty() ? whole : divided) += 1;
      const auto plan =
          or_throw(simulator::plan_from_json(simulator::plan_to_json(both.plan), "p.json"));
      const simulator::Step step = or_throw(simulator::unroll(trace, plan));
      EXPECT_EQ(&step.recording(), both.plan.micro_batches.empty() ? &trace : &in_parts.trace());
      const StepIndex of_step(step);
      const auto lowering = or_throw(simulator::lower(of_step, plan));
      const auto replayed = simulator::replay(of_step, lowering.schedule);
      EXPECT_EQ(replayed.step_ns, both.predicted.step_ns);
      EXPECT_EQ(replayed.peak_requested, both.predicted.peak_requested);
      EXPECT_LE(replayed.peak_active, budget);
    }
  }
  EXPECT_GT(divided, 20);
  EXPECT_GT(whole, 20);
}

}  // namespace
}  // namespace stowage::planner
