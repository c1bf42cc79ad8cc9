// planner/pins: what is pinned stays as it was said, all else is searched for, floor and bound are
// of that. By hand.
#include "planner/pins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "planner/planner.h"
#include "tests/planner/stack_of_layers.h"
#include "tests/support/micro_trace.h"

namespace stowage::planner {
namespace {

using simulator::Decision;
using simulator::PeakKind;
using simulator::Plan;
using simulator::SavedRule;
using simulator::StepIndex;
using ::testing::HasSubstr;

SavedRule pinned_rule(const std::string& site, Decision decision) {
  SavedRule rule;
  rule.site = site;
  rule.decision = decision;
  return rule;
}

Result<PlanOutcome> planned_around(const StepIndex& index, Bytes budget, const Plan& pins) {
  PlanRequest request;
  request.budget = budget;
  request.budget_on = PeakKind::requested;
  request.pins = pins;
  return make_plan(index, request);
}

Decision decision_at(const Trace& trace, const Plan& plan, const std::string& site) {
  const auto decisions = simulator::resolve(trace, plan);
  EXPECT_TRUE(decisions.ok());
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    if (trace.string(trace.saved.site[s]) == site) return decisions->saved[s].decision;
  }
  ADD_FAILURE() << site;
  return Decision::recompute;
}

// 9 MB, 5 of them allowed: four storages leave. A copy takes as long as ten layers, so that at best
// the first four leave: those whose copies can start first. Pinned, they cannot, and the other four
// do: the first pack of these is at 0.5 ms, so they are out at 4.5 ms, and mirrored from the end of
// the step they are awaited with 5 layers of 0.2 ms left, behind 4 ms of copies.
TEST(Pins, WhatIsKeptStaysAndTheBoundIsOfThat) {
  const Trace trace = stack(8, 100'000);
  const StepIndex index(trace);
  const auto free = planned_around(index, 5'000'000, {});
  ASSERT_TRUE(free.ok());
  EXPECT_EQ(free->lower_bound_step, 4'100'000 + 4'200'000);
  EXPECT_EQ(free->pinned, 0);
  Plan pins;
  pins.saved = {pinned_rule("layers.[0-3]#0", Decision::keep)};
  const auto outcome = planned_around(index, 5'000'000, pins);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  ASSERT_EQ(outcome->kind, PlanKind::planned);
  EXPECT_EQ(outcome->pinned, 4);
  EXPECT_EQ(outcome->lower_bound_step, 4'500'000 + 5'000'000);
  EXPECT_GE(outcome->predicted.step_ns, outcome->lower_bound_step);
  for (int layer = 0; layer < 8; ++layer) {
    EXPECT_EQ(decision_at(trace, outcome->plan, "layers." + std::to_string(layer) + "#0"),
              layer < 4 ? Decision::keep : Decision::offload);
  }
}

// The step fits, and yet what is pinned to leave does: and nothing else.
TEST(Pins, WhatIsToLeaveLeavesAlsoWhereTheStepFits) {
  const Trace trace = stack(4, 4'000'000);
  const StepIndex index(trace);
  Plan pins;
  pins.saved = {pinned_rule("layers.2#0", Decision::offload)};
  const auto outcome = planned_around(index, 9'000'000, pins);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->kind, PlanKind::planned);
  EXPECT_EQ(outcome->predicted.d2h_bytes, 1'000'000);
  EXPECT_EQ(decision_at(trace, outcome->plan, "layers.2#0"), Decision::offload);
  // Its copies hide behind 4 ms of compute.
  EXPECT_EQ(outcome->predicted.step_ns, outcome->resident.step_ns);
  EXPECT_EQ(outcome->gap_ppm, 0);
}

TEST(Pins, PointsThatAreSaidStay) {
  const Trace trace = stack(4, 4'000'000);
  const StepIndex index(trace);
  Plan pins;
  pins.saved = {pinned_rule("layers.1#0", Decision::offload)};
  pins.saved[0].release.kind = simulator::ReleasePoint::Kind::point;
  pins.saved[0].release.point.layer = "layers.3";
  pins.saved[0].release.point.where = simulator::ProgramPoint::Where::begin;
  const auto outcome = planned_around(index, 4'000'000, pins);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  ASSERT_EQ(outcome->kind, PlanKind::planned);
  const auto decisions = simulator::resolve(trace, outcome->plan);
  ASSERT_TRUE(decisions.ok());
  EXPECT_EQ(decisions->saved[1].release.kind, simulator::ReleasePoint::Kind::point);
  EXPECT_EQ(decisions->saved[1].release.point.layer, "layers.3");
}

// All of it stays, so that nothing lowers the peak of 5 MB: without the pins 1 MB would do.
TEST(Pins, ABudgetThatTheyMakeUnreachableIsNotFoundAndTheReasonNamesThem) {
  const Trace trace = stack(4, 1'000'000);
  const StepIndex index(trace);
  Plan pins;
  pins.saved = {pinned_rule("layers.*", Decision::keep)};
  const auto outcome = planned_around(index, 2'000'000, pins);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->kind, PlanKind::not_found);
  EXPECT_EQ(outcome->pinned, 4);
  EXPECT_EQ(outcome->floor.bytes, 5'000'000);
  EXPECT_EQ(outcome->kept_from, 5'000'000);
  ASSERT_FALSE(outcome->notes.empty());
  EXPECT_THAT(outcome->notes.front(), HasSubstr("the 4 pinned decisions"));
  EXPECT_THAT(outcome->notes.front(), HasSubstr("without them the floor is 1.00 MB"));
  // Where no plan at all is within it, that is not for the pins.
  const auto less = planned_around(index, 900'000, pins);
  ASSERT_TRUE(less.ok());
  EXPECT_EQ(less->kind, PlanKind::infeasible);
  const auto at = planned_around(index, outcome->kept_from, pins);
  ASSERT_TRUE(at.ok());
  EXPECT_TRUE(at->feasible());
}

std::string why_refused(const Trace& trace, const Plan& pins) {
  const auto outcome = planned_around(StepIndex(trace), 3'000'000, pins);
  EXPECT_FALSE(outcome.ok());
  if (outcome.ok()) return "";
  EXPECT_EQ(outcome.error().code, ErrorCode::bad_input);
  return outcome.error().pointer + " " + outcome.error().message + " (" + outcome.error().hint +
         ")";
}

TEST(Pins, AreRefusedWhereTheyCannotBe) {
  const Trace trace = stack(4, 1'000'000);
  Plan pins;
  pins.saved = {pinned_rule("layer.0#0", Decision::keep)};
  EXPECT_THAT(why_refused(trace, pins),
              HasSubstr("/saved/0/site the rule with site \"layer.0#0\""));
  pins.saved = {pinned_rule("layers.0#0", Decision::offload)};
  pins.saved[0].copy_out = simulator::CopyMode::compute;
  EXPECT_THAT(why_refused(trace, pins), HasSubstr("/saved/0 a search copies on the lanes alone"));
  pins = {};
  pins.parameters.emplace();
  pins.parameters->prefetch = 1;
  pins.parameters->shards = {{"layers.0"}};
  EXPECT_THAT(why_refused(trace, pins), HasSubstr("/parameters/prefetch"));
  PlanRequest request;
  request.policy = "thunder";
  request.pins.saved = {pinned_rule("layers.0#0", Decision::keep)};
  const auto beside = make_plan(StepIndex(trace), request);
  ASSERT_FALSE(beside.ok());
  EXPECT_EQ(beside.error().code, ErrorCode::usage);
}

// Two saved tensors of one storage, and one whose storage is written in place behind its pack.
TEST(Pins, AreRefusedWhereTheStorageCannotDoIt) {
  testing::MicroTrace m;
  m.begin_layer("a");
  m.begin_op();
  const StorageId shared = m.alloc(1000);
  const SavedId first = m.pack(shared);
  const SavedId second = m.pack(shared);
  m.let_go(shared);
  const StorageId written = m.alloc(1000);
  const SavedId third = m.pack(written);
  m.let_go(written);
  m.end_op();
  m.begin_op();
  m.write(written);
  m.end_op();
  m.end_layer("a");
  m.run(10);
  m.backward();
  m.begin_op();
  for (const SavedId each : {third, second, first}) m.drop(m.unpack(each));
  m.end_op();
  m.free(written);
  m.free(shared);
  const Trace trace = m.finish();
  Plan pins;
  pins.saved = {pinned_rule("a#0", Decision::keep), pinned_rule("a#1", Decision::offload)};
  EXPECT_THAT(why_refused(trace, pins), HasSubstr("'a#1' and 'a#0' are one storage"));
  EXPECT_THAT(why_refused(trace, pins), HasSubstr("/saved/1 "));
  pins.saved = {pinned_rule("a#2", Decision::offload)};
  EXPECT_THAT(why_refused(trace, pins), HasSubstr("'a#2' is pinned to leave: "));
  // One of the two says it for both.
  pins.saved = {pinned_rule("a#1", Decision::offload)};
  const auto outcome = planned_around(StepIndex(trace), 2000, pins);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(decision_at(trace, outcome->plan, "a#0"), Decision::offload);
  EXPECT_EQ(outcome->predicted.d2h_bytes, 1000);
}

}  // namespace
}  // namespace stowage::planner
