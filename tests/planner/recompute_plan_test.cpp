// Plans that let layers run again: what may be decided, the policy, and the rules of a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/segment_rule_writer.h"
#include "tests/support/random_chain.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RecomputePlan : public ::testing::Test {
 protected:
  RecomputePlan() : random_(5), trace_(testing::random_chain(random_, 9)), index_(trace_) {}

  [[nodiscard]] Bytes resident() const {
    return simulator::replay(index_, simulator::resident_schedule(index_)).peak_requested;
  }
  PlanOutcome plan(PlanRequest request) {
    request.budget_on = simulator::PeakKind::requested;
    auto outcome = make_plan(index_, request);
    EXPECT_TRUE(outcome.ok()) << (outcome ? "" : outcome.error().text());
    return outcome ? std::move(outcome).value() : PlanOutcome();
  }
  PlanOutcome policy(const std::string& spec) {
    PlanRequest request;
    request.policy = spec;
    return plan(request);
  }
  [[nodiscard]] std::vector<std::string> segments_of(const PlanOutcome& outcome) const {
    const auto structure = simulator::structure_of(trace_, outcome.plan);
    EXPECT_TRUE(structure.ok());
    return structure ? structure->recompute : std::vector<std::string>();
  }

  std::mt19937_64 random_;
  Trace trace_;
  simulator::StepIndex index_;
};

TEST_F(RecomputePlan, DecidesWhatIsAllowedAlone) {
  PlanRequest request;
  request.budget = resident() * 7 / 10;
  const PlanOutcome all = plan(request);
  request.allowed = {.offload = true, .recompute = false, .parameters = true};
  const PlanOutcome moved = plan(request);
  request.allowed = {.offload = false, .recompute = true, .parameters = false};
  const PlanOutcome again = plan(request);
  EXPECT_THAT(moved.plan.recompute, IsEmpty());
  EXPECT_GT(moved.predicted.d2h_bytes, 0);
  EXPECT_FALSE(again.plan.recompute.empty());
  EXPECT_EQ(again.predicted.d2h_bytes, 0);
  for (const PlanOutcome* each : {&all, &moved, &again}) {
    ASSERT_TRUE(each->feasible());
    EXPECT_LE(each->predicted.peak_requested, *request.budget);
    EXPECT_GE(each->predicted.step_ns, all.lower_bound_step);
  }
  EXPECT_LE(all.predicted.step_ns, std::min(moved.predicted.step_ns, again.predicted.step_ns));
  // With less to decide nothing gets better, and bounds say so.
  EXPECT_LE(all.lower_bound_step, moved.lower_bound_step);
  EXPECT_LE(all.floor.bytes, moved.floor.bytes);
}

TEST_F(RecomputePlan, AnswersTheSameEachTime) {
  PlanRequest request;
  request.budget = resident() * 6 / 10;
  const PlanOutcome first = plan(request);
  const PlanOutcome second = plan(request);
  EXPECT_EQ(first.plan, second.plan);
  EXPECT_EQ(first.search.evaluations, second.search.evaluations);
}

TEST_F(RecomputePlan, MoreMemoryIsNeverSlowerOnTenths) {
  Nanoseconds before = 0;
  for (const int tenths : {5, 6, 7, 8, 9}) {
    PlanRequest request;
    request.budget = resident() / 10 * tenths + resident() % 10 * tenths / 10;
    const PlanOutcome outcome = plan(request);
    if (!outcome.feasible()) continue;
    if (before > 0) {
      EXPECT_LE(outcome.predicted.step_ns, before) << tenths;
    }
    before = outcome.predicted.step_ns;
  }
  EXPECT_GT(before, 0);
}

TEST_F(RecomputePlan, EndsWithinItsEvaluations) {
  PlanRequest request;
  request.budget = resident() * 6 / 10;
  request.max_evaluations = 60;
  const PlanOutcome outcome = plan(request);
  EXPECT_TRUE(outcome.search.exhausted);
  EXPECT_TRUE(outcome.feasible());
}

TEST_F(RecomputePlan, CheckpointRunsEachLayerAgain) {
  EXPECT_THAT(policy("checkpoint").plan.recompute,
              ElementsAre(::testing::Field(&simulator::RecomputeRule::segment, "layers.[0-8]")));
  EXPECT_EQ(segments_of(policy("checkpoint")).size(), 9U);
  EXPECT_THAT(segments_of(policy("checkpoint:every=4")),
              ElementsAre("layers.0", "layers.4", "layers.8"));
  EXPECT_THAT(segments_of(policy("checkpoint:run=sqrt")),
              ElementsAre("layers.0..layers.2", "layers.3..layers.5", "layers.6..layers.8"));
  const PlanOutcome each = policy("checkpoint");
  EXPECT_LT(each.predicted.peak_requested, each.resident.peak_requested);
  EXPECT_GT(each.predicted.step_ns, each.resident.step_ns);
}

TEST_F(RecomputePlan, CheckpointSaysWhereAnOptionIsMoreThanThereAreLayers) {
  const PlanOutcome every = policy("checkpoint:every=100");
  EXPECT_THAT(segments_of(every), ElementsAre("layers.0"));
  EXPECT_THAT(every.notes, ::testing::Contains(HasSubstr(
                               "there are 9 identical layers, so that with every=100 the first")));
  const PlanOutcome run = policy("checkpoint:run=100");
  EXPECT_THAT(segments_of(run), ElementsAre("layers.0..layers.8"));
  EXPECT_THAT(run.notes, ::testing::Contains(HasSubstr("9 identical layers, fewer than run=100")));
  EXPECT_THAT(policy("checkpoint:every=9").notes, Not(::testing::Contains(HasSubstr("identical"))));
}

// The peak is in a layer that keeps all the same.
TEST(RecomputePolicy, ThatBuysNothingSaysSo) {
  const auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/resnet50-fp32-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const simulator::StepIndex index(loaded->trace);
  PlanRequest request;
  request.policy = "checkpoint";
  const auto outcome = make_plan(index, request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  ASSERT_GE(outcome->predicted.peak_active, outcome->resident.peak_active);
  EXPECT_THAT(outcome->notes, ::testing::Contains(HasSubstr("checkpoint buys nothing here")));
}

// What a policy's rules say wrong is in no file, so that nothing points into one.
TEST(RecomputePolicy, ErrorsPointIntoNoFile) {
  const Error error =
      of_policy("checkpoint:run=2", {ErrorCode::bad_input, "segment 'a' cannot run again", "",
                                     "/recompute/0", "name layers within it"});
  EXPECT_EQ(error.pointer, "");
  EXPECT_THAT(error.text(), HasSubstr("policy checkpoint:run=2: segment 'a' cannot run again"));
  EXPECT_THAT(error.hint, HasSubstr("another option of the policy"));
  const Error option{ErrorCode::usage, "option every", "", "", "a number"};
  EXPECT_EQ(of_policy("checkpoint", option).text(), option.text());
}

TEST_F(RecomputePlan, CheckpointRefusesBadOptions) {
  for (const char* spec :
       {"checkpoint:every=0", "checkpoint:run=two", "checkpoint:every=2,run=2"}) {
    PlanRequest request;
    request.policy = spec;
    const auto outcome = make_plan(index_, request);
    ASSERT_FALSE(outcome.ok()) << spec;
    EXPECT_EQ(outcome.error().code, ErrorCode::usage) << spec;
    EXPECT_THAT(outcome.error().message, HasSubstr("option")) << spec;
  }
}

TEST_F(RecomputePlan, RulesGiveTheStructureBack) {
  for (int round = 0; round < 30; ++round) {
    simulator::Structure structure;
    for (int layer = 0; layer < 9; ++layer) {
      if (random_() % 2 == 0) structure.recompute.push_back("layers." + std::to_string(layer));
    }
    simulator::Plan plan;
    plan.recompute = simulator::recompute_rules(trace_, structure);
    EXPECT_LE(plan.recompute.size(), 1U);
    const auto back = simulator::structure_of(trace_, plan);
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(back->recompute, structure.recompute);
  }
}

}  // namespace
}  // namespace stowage::planner
