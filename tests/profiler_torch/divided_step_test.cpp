// Steps of several forwards and backwards, as gradient accumulation has them.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "executor/layer.h"
#include "simulator/step/step.h"
#include "tests/profiler_torch/hand_step.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;
using testing::input;
using testing::parameter;

// A net of two layers, and one without a layer.
struct Net {
  at::Tensor p = parameter({16, 16});
  at::Tensor q = parameter({16, 16});
  at::Tensor x = input({8, 16});
  bool has_layers = true;

  at::Tensor loss(double scale) {
    const TensorFn first = [this](const auto& in) { return at::linear(in[0], p).tanh(); };
    const TensorFn second = [this](const auto& in) { return at::linear(in[0], q).pow(2); };
    if (!has_layers) return second({first({x * scale})}).sum();
    return layer("second", second, {layer("first", first, {x * scale})}).sum();
  }
};

TEST(DividedStep, KnowsItsMicroBatches) {
  Net net;
  HandStep step({net.p, net.q}, {net.x}, [&] {
    double sum = 0;
    for (const double scale : {1.0, 2.0, 3.0}) sum += backward(net.loss(scale));
    return sum;
  });
  const Trace& trace = step.trace();
  const simulator::Step whole(trace);
  ASSERT_GE(trace.saved.size(), 9u);
  ASSERT_EQ(trace.saved.size() % 3, 0u);
  const std::size_t each = trace.saved.size() / 3;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const SavedId saved(s);
    EXPECT_EQ(whole.pass(saved), simulator::Pass::forward);
    // x * scale stands ahead of the first layer, behind the backward of the micro-batch before.
    if (trace.string(trace.layers.name[trace.saved.layer[s].index()]) == "step") continue;
    EXPECT_EQ(whole.micro_batch(saved), static_cast<int>(s / each)) << s;
  }
  expect_exact_in_every_style(step);
}

// Each event by itself is the recorded one, but what a plan proves holds in the recorded order
// alone: here the second forward would overwrite host slots that the first backward still reads.
TEST(DividedStep, InAnotherOrderIsRefused) {
  for (const bool has_layers : {true, false}) {
    SCOPED_TRACE(has_layers);
    Net net;
    net.has_layers = has_layers;
    bool in_turn = true;
    HandStep step({net.p, net.q}, {net.x}, [&] {
      if (in_turn) {
        const double first = backward(net.loss(1));
        return first + backward(net.loss(2));
      }
      const at::Tensor a = net.loss(1);
      const at::Tensor b = net.loss(2);
      const double first = backward(a);
      return first + backward(b);
    });
    for (const testing::Style& style : testing::styles()) {
      SCOPED_TRACE(style.name);
      const auto lowering = step.lower(testing::offload_made(step.trace(), style.decision));
      in_turn = true;
      const testing::Outcome reference = step.plain(0);
      in_turn = false;
      const testing::Outcome other = step.plain(0);
      const auto refusing = step.plan(lowering.schedule);
      const std::string error = testing::error_of([&] { step.planned(*refusing, 0); });
      EXPECT_NE(error.find("not the one the plan was made for"), std::string::npos) << error;
      in_turn = true;
      testing::expect_same(step.planned(*refusing, 0), reference);
      in_turn = false;
      const auto going_on = step.plan(lowering.schedule, executor::OffPlan::offload_all);
      const testing::Outcome outcome = step.planned(*going_on, 0);
      EXPECT_FALSE(outcome.report.on_plan);
      testing::expect_same(outcome, other);
    }
  }
}

TEST(DividedStep, WithAMicroBatchMoreIsRefused) {
  Net net;
  int parts = 2;
  HandStep step({net.p, net.q}, {net.x}, [&] {
    double sum = 0;
    for (int part = 0; part < parts; ++part) sum += backward(net.loss(1 + part));
    return sum;
  });
  const auto lowering =
      step.lower(testing::offload_made(step.trace(), testing::styles().front().decision));
  const auto plan = step.plan(lowering.schedule);
  parts = 3;
  const std::string error = testing::error_of([&] { step.planned(*plan, 0); });
  EXPECT_NE(error.find("was not recorded"), std::string::npos) << error;
  parts = 1;
  EXPECT_NE(step.planned(*plan, 0).end_error.find("the step ended after"), std::string::npos);
}

}  // namespace
}  // namespace stowage
