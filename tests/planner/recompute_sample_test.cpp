// Plans of a recorded step in which layers or ops run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/step/op_spans.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

using ::testing::HasSubstr;

Trace sample() {
  const std::string file =
      std::string(STOWAGE_SOURCE_DIR) + "/traces/samples/gpt2-bf16-h200.trace.json.gz";
  auto read = load_trace(file);
  EXPECT_TRUE(read.ok()) << (read ? "" : read.error().text());
  return std::move(read->trace);
}

class RecomputeOfASample : public ::testing::Test {
 protected:
  RecomputeOfASample() : trace_(sample()), index_(trace_) {}

  PlanOutcome policy(const std::string& spec) {
    PlanRequest request;
    request.policy = spec;
    auto outcome = make_plan(index_, request);
    EXPECT_TRUE(outcome.ok()) << (outcome ? "" : outcome.error().text());
    return outcome ? std::move(outcome).value() : PlanOutcome();
  }

  Trace trace_;
  simulator::StepIndex index_;
};

// What runs again is part of backward: parameters stay from their forward over that to the end of
// their backward, and are copied once a step.
TEST_F(RecomputeOfASample, BackwardStreamsOnceAlsoWhereTheLayerRunsAgain) {
  Bytes bytes = 0;
  for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
    const LayerId layer = trace_.storages.layer[s];
    const bool is_parameter = trace_.storages.storage_class[s] == StorageClass::parameter;
    if (!is_parameter || !layer.valid()) continue;
    const std::string& name = trace_.string(trace_.layers.name[layer.index()]);
    if (name.starts_with("layers.4.")) bytes += trace_.storages.bytes[s];
  }
  ASSERT_GT(bytes, 0);
  simulator::Plan plan;
  plan.recompute.resize(1);
  plan.recompute.front().segment = "layers.4";
  const auto copied = [&](simulator::StreamMode mode) {
    plan.parameters = simulator::ParameterPlan{{{"layers.4"}}, mode, 0};
    const auto step = simulator::unroll(trace_, plan);
    if (!step) return Bytes{-1};
    const simulator::StepIndex index(*step);
    const auto lowered = simulator::lower(index, plan);
    return lowered ? simulator::replay(index, lowered->schedule).h2d_bytes : -1;
  };
  EXPECT_EQ(copied(simulator::StreamMode::backward), bytes);
  EXPECT_EQ(copied(simulator::StreamMode::forward), bytes);
  EXPECT_GT(copied(simulator::StreamMode::always), bytes);
}

TEST_F(RecomputeOfASample, SelectiveMakesAgainWhatNoListedOpMade) {
  const PlanOutcome all = policy("selective");
  EXPECT_LT(all.predicted.peak_requested, all.resident.peak_requested);
  EXPECT_GT(all.predicted.step_ns, all.resident.step_ns);
  const auto structure = simulator::structure_of(trace_, all.plan);
  ASSERT_TRUE(structure.ok());
  EXPECT_TRUE(structure->recompute.empty());
  const simulator::OpSpans spans(trace_);
  std::size_t again = 0;
  for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
    const std::string& site = trace_.string(trace_.saved.site[s]);
    if (std::find(structure->ops.begin(), structure->ops.end(), site) == structure->ops.end()) {
      continue;
    }
    ++again;
    const StorageId of = trace_.saved.storage[s];
    const OpId maker = spans.primitive(trace_.storages.alloc_op[of.index()]);
    EXPECT_THAT(trace_.string(trace_.ops.name[maker.index()]), ::testing::Not(HasSubstr("mm")));
  }
  EXPECT_GT(again, 50U);
  const PlanOutcome fewer = policy("selective:save=*mm+*layer_norm*");
  EXPECT_GT(fewer.predicted.peak_requested, all.predicted.peak_requested);
  PlanRequest request;
  request.policy = "selective:save=mm+";
  EXPECT_EQ(make_plan(index_, request).error().code, ErrorCode::usage);
  request.policy = "selective:save=*";
  EXPECT_EQ(make_plan(index_, request).error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace stowage::planner
