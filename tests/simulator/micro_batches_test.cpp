// A plan's micro-batches choose the recording that all else of it is about.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "simulator/lowering/lowering.h"
#include "simulator/plan/plan.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/step_index.h"
#include "simulator/step/unroll.h"
#include "tests/support/micro_trace.h"
#include "tests/support/or_throw.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;
using testing::or_throw;

Trace trace_with(const std::string& layer, const std::vector<Structure::Parts>& parts) {
  MicroTrace m;
  m.begin_layer(layer);
  const StorageId a = m.alloc(100);
  const SavedId saved = m.pack(a);
  m.end_layer(layer);
  m.run(10);
  m.backward();
  m.unpack(saved);
  m.free(a);
  Trace trace = m.finish();
  for (const Structure::Parts& each : parts) {
    trace.micro_batches.segment.emplace_back(trace.strings.size());
    trace.micro_batches.count.push_back(each.parts);
    trace.strings.push_back(each.segment);
  }
  return trace;
}

// "whole" at once, "two" with the head in 2 parts, "both" with the head in 2 and the body in 3.
Trace sweep() {
  Trace trace = trace_with("whole", {});
  trace.divided.push_back(std::make_shared<const Trace>(trace_with("two", {{"head", 2}})));
  trace.divided.push_back(
      std::make_shared<const Trace>(trace_with("both", {{"head", 2}, {"body", 3}})));
  return trace;
}

Plan plan_in(std::vector<MicroBatchRule> rules) {
  Plan plan;
  plan.micro_batches = std::move(rules);
  return plan;
}

TEST(MicroBatches, ChooseARecording) {
  const Trace trace = sweep();
  const auto recording = [&](std::vector<MicroBatchRule> rules) {
    return &or_throw(unroll(trace, plan_in(std::move(rules)))).recording();
  };
  EXPECT_EQ(recording({}), &trace);
  EXPECT_EQ(recording({{"head", 1}}), &trace);
  EXPECT_EQ(recording({{"head", 2}}), trace.divided[0].get());
  EXPECT_EQ(recording({{"head", 2}, {"body", 3}}), trace.divided[1].get());
  EXPECT_EQ(recording({{"body", 3}, {"loss", 1}, {"head", 2}}), trace.divided[1].get());
  // One that was recorded under a plan has no other; without a word of it it is as it was recorded.
  const Trace alone = trace_with("two", {{"head", 2}});
  EXPECT_EQ(&or_throw(unroll(alone, plan_in({{"head", 2}}))).recording(), &alone);
  EXPECT_EQ(&or_throw(unroll(alone, Plan())).recording(), &alone);
  EXPECT_EQ(structure_of(or_throw(unroll(alone, Plan()))).parts,
            (std::vector<Structure::Parts>{{"head", 2}}));
}

TEST(MicroBatches, ThatWereNotRecordedAreRefusedWithThoseThatWere) {
  const Trace trace = sweep();
  for (const auto& rules : std::vector<std::vector<MicroBatchRule>>{
           {{"head", 3}}, {{"body", 3}}, {{"head", 2}, {"body", 2}}}) {
    const auto step = unroll(trace, plan_in(rules));
    ASSERT_FALSE(step.ok());
    EXPECT_EQ(step.error().pointer, "/micro_batches");
    EXPECT_NE(step.error().hint.find("it was in head=2, head=2 with body=3; "), std::string::npos)
        << step.error().hint;
  }
  const Trace alone = trace_with("whole", {});
  EXPECT_NE(unroll(alone, plan_in({{"head", 2}})).error().hint.find("--micro-batches 'head=2'"),
            std::string::npos);
}

TEST(MicroBatches, OneIsNotWhatWasRecordedInSeveral) {
  const Trace alone = trace_with("two", {{"head", 2}});
  const auto step = unroll(alone, plan_in({{"body", 1}, {"head", 1}}));
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().pointer, "/micro_batches/1");
  EXPECT_NE(step.error().message.find("has 'head' in micro-batches"), std::string::npos);
}

TEST(MicroBatches, RulesAreAboutTheStepInThem) {
  const Trace trace = sweep();
  Plan plan = plan_in({{"head", 2}});
  plan.target = target_of(trace);
  plan.saved.emplace_back().site = "two#0";
  plan.saved[0].decision = Decision::offload;
  const StepIndex index(or_throw(unroll(trace, plan)));
  EXPECT_EQ(or_throw(lower(index, plan)).schedule.tenants.size(), 1u);
  // Not of the other steps.
  const StepIndex whole(trace);
  EXPECT_EQ(lower(whole, plan).error().pointer, "/micro_batches");
  plan.saved[0].site = "whole#0";
  EXPECT_EQ(lower(index, plan).error().pointer, "/saved/0/site");
  plan.target.fingerprint = "sha256:other";
  EXPECT_EQ(unroll(trace, plan).error().pointer, "/for/fingerprint");
}

}  // namespace
}  // namespace stowage::simulator
