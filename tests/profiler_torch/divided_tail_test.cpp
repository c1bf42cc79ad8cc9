// A training loop of the user's own whose tail runs in micro-batches: recorded at once and divided,
// planned, run.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/division.h"
#include "executor/layer.h"
#include "executor/planned_training.h"
#include "executor/tail.h"
#include "planner/planner.h"
#include "profiler/torch/record.h"
#include "simulator/step/step_index.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/or_throw.h"

namespace stowage {
namespace {

using executor::BackwardRoot;
using testing::fetch;
using testing::hand_device;
using testing::input;
using testing::or_throw;
using testing::parameter;

// A trunk and a wide head; the loss is a mean over rows.
struct DividedLoop {
  at::Tensor trunk = parameter({16, 16});
  at::Tensor head = parameter({400, 16});
  at::Tensor x = input({12, 16});

  void step() {
    for (at::Tensor* each : {&trunk, &head}) each->mutable_grad().reset();
    const TensorFn body = [this](const auto& in) { return at::linear(in[0], trunk).tanh(); };
    const TensorFn logits = [this](const auto& in) { return at::linear(in[0], head); };
    const TailFn tail_of = [&](const std::vector<at::Tensor>& in) {
      return BackwardRoot{layer("head", logits, {in[0]}).logsumexp(-1).pow(2).mean(), {}};
    };
    const BackwardRoot root = tail("head", tail_of, {layer("body", body, {x})});
    root.tensor.backward(root.gradient);
  }
  [[nodiscard]] std::vector<executor::NamedTensor> parameters() const {
    return {{"trunk", trunk}, {"head", head}};
  }
  [[nodiscard]] Trace record(const std::vector<simulator::Structure::Parts>& parts) {
    profiler::RecordSettings settings;
    settings.passes.wait_for_quiet = false;
    settings.micro_batches = parts;
    const profiler::StepFunctions functions{
        {},
        [this] { step(); },
        [this] {
          return profiler::RegisteredTensors{parameters(), {}, {{"x", x}}, {}};
        }};
    return or_throw(profiler::record(hand_device(), functions, {}, settings));
  }
};

TEST(DividedTail, OfALoopOfOnesOwnIsRecordedPlannedAndRun) {
  DividedLoop loop;
  Trace whole = loop.record({});
  whole.divided.push_back(std::make_shared<const Trace>(loop.record({{"head", 5}})));
  const auto trace = std::make_shared<const Trace>(std::move(whole));
  const simulator::StepIndex index(*trace);
  planner::PlanRequest request;
  request.placement = simulator::PlacementMode::caching;
  request.budget_on = simulator::PeakKind::requested;
  request.budget = trace->divided[0]->peaks.requested[0] + 1000;
  request.allowed = {.offload = false, .recompute = false, .parameters = false, .optimizer = false};
  ASSERT_LT(*request.budget, trace->peaks.requested[0]);
  const planner::PlanOutcome outcome = or_throw(planner::make_plan(index, request));
  ASSERT_TRUE(outcome.feasible());
  ASSERT_EQ(outcome.plan.micro_batches.size(), 1U);

  // The reference: the same parts, and nothing else.
  executor::Division division({{"head", 5}});
  std::vector<std::vector<char>> expected;
  {
    const executor::InstalledDriver divided(division);
    loop.step();
    for (const auto& each : loop.parameters()) {
      expected.push_back(fetch(hand_device(), each.tensor.grad()));
    }
  }
  const auto training = or_throw(
      executor::PlannedTraining::create(hand_device(), trace, outcome.plan, loop.parameters()));
  for (int k = 0; k < 3; ++k) {
    hand_device().reset_peak();
    const executor::StepReport report = or_throw(training->run([&] { loop.step(); }));
    EXPECT_TRUE(report.on_plan) << report.first_difference;
    EXPECT_EQ(report.memory.peak_requested, training->predicted().peak_requested);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(fetch(hand_device(), loop.parameters()[i].tensor.grad()), expected[i]) << i;
    }
  }
}

TEST(DividedTail, ThatTheStepDoesNotHaveIsNoRecording) {
  DividedLoop loop;
  try {
    (void)loop.record({{"loss", 2}});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("no tail named 'loss'"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stowage
