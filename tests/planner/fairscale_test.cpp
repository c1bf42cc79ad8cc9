// planner/policies/fairscale.cpp: the cut by hand, and a recorded step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/support/head_in_parts.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_parts.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MicroTrace;
using ::testing::Not;
using ::testing::SizeIs;

// "embed" and four layers with parameters of 200, 400, 400, 400 and 1200 bytes. Each layer is given
// what the one before it returned, saves it and 1000 bytes inside.
Trace five_items() {
  MicroTrace t;
  std::vector<std::pair<SavedId, StorageId>> saved;
  std::vector<StorageId> weights;
  for (const Bytes bytes : {200, 400, 400, 400, 1200}) weights.push_back(t.existing(bytes));
  StorageId given;
  const char* names[] = {"embed", "layers.0", "layers.1", "layers.2", "layers.3"};
  for (std::size_t i = 0; i < 5; ++i) {
    t.begin_layer(names[i]);
    t.set_layer(weights[i], names[i]);
    if (i > 0) t.passed(t.view(given));
    t.run(10'000).begin_op("aten::linear");
    t.read(weights[i]);
    if (i > 0) saved.emplace_back(t.pack(given), given);
    const StorageId inside = t.alloc(1000);
    t.end_op();
    t.run(10'000).begin_op("aten::linear");
    saved.emplace_back(t.pack(inside), inside);
    const StorageId out = t.alloc(100);
    t.end_op();
    t.let_go(inside);
    t.end_layer(names[i]);
    if (i > 0) t.passed(t.view(out));
    if (i > 0) t.let_go(given);
    given = out;
  }
  t.free(given);
  t.backward();
  for (; !saved.empty(); saved.pop_back()) {
    t.begin_op("aten::linear_backward");
    t.read(weights[saved.size() / 2]);
    t.drop(t.unpack(saved.back().first));
    t.run(10'000).end_op();
    t.free(saved.back().second);
  }
  return t.finish();
}

std::vector<std::vector<std::string>> shards_of(const Trace& trace, const std::string& spec) {
  const auto rules = policy_rules(simulator::StepIndex(trace), spec);
  EXPECT_TRUE(rules.ok()) << (rules ? "" : rules.error().text());
  return rules ? rules->parameters->shards : std::vector<std::vector<std::string>>();
}

// 2600 bytes. In two: 1300 each; 200 + 400 + 400, and with 400 more it would be 1400. In three: 866
// each; 200 + 400, 400 + 400, 1200.
TEST(Fairscale, CutsGreedilyByParameters) {
  const Trace trace = five_items();
  EXPECT_THAT(shards_of(trace, "fairscale:shards=1"), SizeIs(1));
  EXPECT_THAT(shards_of(trace, "fairscale:shards=2"),
              ElementsAre(ElementsAre("embed", "layers.[0-1]"), ElementsAre("layers.[2-3]")));
  EXPECT_THAT(shards_of(trace, "fairscale"),
              ElementsAre(ElementsAre("embed", "layers.0"), ElementsAre("layers.[1-2]"),
                          ElementsAre("layers.3")));
  // No more shards than items, which is said.
  EXPECT_THAT(shards_of(trace, "fairscale:shards=99"), SizeIs(5));
  const simulator::StepIndex index(trace);
  EXPECT_THAT(policy_rules(index, "fairscale:shards=99")->notes,
              Contains("policy fairscale: the layers make 5 shards, fewer than shards=99"));
  EXPECT_THAT(policy_rules(index, "fairscale")->notes, Not(Contains(HasSubstr("fewer than"))));
  for (const char* spec : {"fairscale:shards=0", "fairscale:shards=few", "fairscale:shards="}) {
    EXPECT_EQ(policy_rules(simulator::StepIndex(trace), spec).error().code, ErrorCode::usage);
  }
}

TEST(Fairscale, TakesGivenShards) {
  const Trace trace = five_items();
  EXPECT_THAT(shards_of(trace, "fairscale:at=layers.1"),
              ElementsAre(ElementsAre("embed", "layers.0"), ElementsAre("layers.[1-3]")));
  EXPECT_THAT(
      shards_of(trace, "fairscale:at=layers.3+layers.0"),
      ElementsAre(ElementsAre("embed"), ElementsAre("layers.[0-2]"), ElementsAre("layers.3")));
  const auto error_of = [&](const std::string& spec) {
    return policy_rules(simulator::StepIndex(trace), spec).error();
  };
  EXPECT_EQ(error_of("fairscale:at=layers.9").code, ErrorCode::usage);
  EXPECT_THAT(error_of("fairscale:at=layers.1+layer.2").text(),
              HasSubstr("'layer.2' is no item of the model (the nearest is 'layers.2')"));
  EXPECT_THAT(error_of("fairscale:at=nowhere_at_all").text(),
              HasSubstr("'nowhere_at_all' is no item of the model; write at="));
  EXPECT_THAT(error_of("fairscale:at=layers.1,shards=2").text(), HasSubstr("without shards"));
  EXPECT_EQ(error_of("fairscale:recompute=maybe").code, ErrorCode::usage);
}

// What the step saves stays; shards come and go.
TEST(Fairscale, WithoutRecomputeMovesParametersAlone) {
  const Trace trace = five_items();
  const simulator::StepIndex index(trace);
  PlanRequest request;
  request.policy = "fairscale:shards=2,recompute=no";
  const auto outcome = make_plan(index, request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_THAT(outcome->plan.recompute, IsEmpty());
  EXPECT_EQ(outcome->predicted.d2h_bytes, 0);
  EXPECT_GT(outcome->predicted.h2d_bytes, 0);
  const auto schedule = simulator::lower(index, outcome->plan);
  ASSERT_TRUE(schedule.ok());
  EXPECT_TRUE(testing::offloads_of(schedule->schedule).empty());
}

// A recording in two parts says how the shards are used there; here it is the same step, twice the
// same bytes do not matter.
TEST(Fairscale, PlansTheStepInItsMicroBatches) {
  Trace in_two = five_items();
  simulator::set_recorded_parts({{simulator::kWholeStep, 2}}, in_two);
  const Trace trace = testing::with_parts(five_items(), {std::move(in_two)});
  const simulator::StepIndex index(trace);
  PlanRequest request;
  request.policy = "fairscale:shards=2,micro_batches=2";
  const auto outcome = make_plan(index, request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_THAT(outcome->plan.micro_batches,
              ElementsAre(simulator::MicroBatchRule{simulator::kWholeStep, 2}));
  EXPECT_EQ(outcome->plan.target, simulator::target_of(trace));
  const auto step = simulator::unroll(trace, outcome->plan);
  ASSERT_TRUE(step.ok()) << step.error().text();
  EXPECT_EQ(&step->recording(), trace.divided.front().get());
  EXPECT_THAT(simulator::structure_of(*step).recompute,
              ElementsAre("layers.0..layers.1", "layers.2..layers.3"));
  request.policy = "fairscale:micro_batches=4";
  const Error error = make_plan(index, request).error();
  EXPECT_THAT(error.text(), HasSubstr("policy fairscale: the step was not recorded in the "
                                      "micro-batches *=4 (it was in *=2"));
}

// In two shards, each runs again as one. What they are given, 100 bytes each, is on the host, and
// the next shard's parameters load while one runs.
TEST(Fairscale, EachShardRunsAgainAndItsBoundaryIsOnTheHost) {
  const Trace trace = five_items();
  PlanRequest request;
  request.policy = "fairscale:shards=2";
  const auto outcome = make_plan(simulator::StepIndex(trace), request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->plan.parameters->stream,
            simulator::StreamModes(simulator::StreamMode::always));
  EXPECT_EQ(outcome->plan.parameters->prefetch, 1);
  const auto structure = simulator::structure_of(trace, outcome->plan);
  ASSERT_TRUE(structure.ok());
  EXPECT_THAT(structure->recompute, ElementsAre("layers.0..layers.1", "layers.2..layers.3"));
  EXPECT_EQ(outcome->predicted.d2h_bytes, 200);
  EXPECT_LT(outcome->predicted.peak_requested, outcome->resident.peak_requested);
}

TEST(Fairscale, OfRecordedSteps) {
  const std::string folder = std::string(STOWAGE_SOURCE_DIR) + "/traces/samples/";
  const auto planned = [&](const std::string& file) {
    const auto read = load_trace(folder + file + ".trace.json.gz");
    EXPECT_TRUE(read.ok()) << file;
    PlanRequest request;
    request.policy = "fairscale:shards=4";
    auto outcome = make_plan(simulator::StepIndex(read->trace), request);
    EXPECT_TRUE(outcome.ok()) << file << (outcome ? "" : outcome.error().text());
    return outcome ? std::move(outcome).value() : PlanOutcome();
  };
  const PlanOutcome gpt2 = planned("gpt2-bf16-h200");
  EXPECT_THAT(gpt2.plan.recompute, SizeIs(3));  // the fourth shard is the head alone
  EXPECT_LT(gpt2.predicted.peak_requested, gpt2.resident.peak_requested / 2);
  EXPECT_GT(gpt2.predicted.host_bytes, 0);
  // A recording of an earlier schema: parameters stream all the same.
  const PlanOutcome cpu = planned("mlp-l6-fp32-cpu");
  EXPECT_THAT(cpu.plan.recompute, IsEmpty());
  ASSERT_FALSE(cpu.notes.empty());
  EXPECT_THAT(cpu.notes.front(), HasSubstr("no layer of a shard can run again"));
}

}  // namespace
}  // namespace stowage::planner
