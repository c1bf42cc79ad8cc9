// layer(): where a step's layers begin and end, as the driver hears it and as a trace tells it.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/layer.h"
#include "executor/step_driver.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;
using testing::input;
using testing::parameter;

// Writes down what it hears; saves nothing.
class Log final : public executor::StepDriver {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override { return nullptr; }
  void layer_event(executor::LayerEvent event, std::string_view path) override {
    constexpr const char* kNames[] = {"fwd>", "fwd<", "bwd>", "bwd<"};
    lines.push_back(kNames[static_cast<std::size_t>(event)] + std::string(path));
  }
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(executor::UpdateEvent, const at::Tensor&) override {}

  std::vector<std::string> lines;

 private:
  executor::InstalledDriver installed_{*this};
};

using Lines = std::vector<std::string>;

at::Tensor times_two(const std::string& path, const at::Tensor& x) {
  return layer(path, [](const auto& in) { return in[0] * 2; }, {x});
}

TEST(Layer, BeginsAndEndsInForwardAndBackward) {
  const at::Tensor p = parameter({4});
  Log log;
  backward(times_two("b", times_two("a", p)).sum());
  EXPECT_EQ(log.lines,
            (Lines{"fwd>a", "fwd<a", "fwd>b", "fwd<b", "bwd>b", "bwd<b", "bwd>a", "bwd<a"}));
}

TEST(Layer, Nests) {
  const at::Tensor p = parameter({4});
  Log log;
  const at::Tensor y = layer(
      "outer",
      [](const auto& in) { return times_two("outer.second", times_two("outer.first", in[0])) + 1; },
      {p});
  backward(y.sum());
  EXPECT_EQ(log.lines,
            (Lines{"fwd>outer", "fwd>outer.first", "fwd<outer.first", "fwd>outer.second",
                   "fwd<outer.second", "fwd<outer", "bwd>outer", "bwd>outer.second",
                   "bwd<outer.second", "bwd>outer.first", "bwd<outer.first", "bwd<outer"}));
}

TEST(Layer, WithoutAGradientHasNoBackward) {
  const at::Tensor p = parameter({4});
  const at::Tensor x = input({4});
  {
    Log log;  // the input needs no gradient, the output does
    const at::Tensor y = layer("first", [&](const auto& in) { return in[0] * p; }, {x});
    backward(y.sum());
    EXPECT_EQ(log.lines, (Lines{"fwd>first", "fwd<first", "bwd>first"}));
  }
  {
    Log log;  // nothing needs one
    EXPECT_FALSE(times_two("frozen", x).requires_grad());
    EXPECT_EQ(log.lines, (Lines{"fwd>frozen", "fwd<frozen"}));
  }
  {
    Log log;
    const at::NoGradGuard guard;
    EXPECT_FALSE(times_two("a", p).requires_grad());
    EXPECT_EQ(log.lines, (Lines{"fwd>a", "fwd<a"}));
  }
  {
    Log log;  // cut inside
    const at::Tensor y = layer("cut", [](const auto& in) { return in[0].detach() * 2; }, {p});
    EXPECT_FALSE(y.requires_grad());
    EXPECT_EQ(log.lines, (Lines{"fwd>cut", "fwd<cut"}));
  }
}

TEST(Layer, ExceptionPassesThrough) {
  const at::Tensor p = parameter({4});
  Log log;
  EXPECT_THROW(
      layer("bad", [](const auto&) -> at::Tensor { throw std::runtime_error("bad"); }, {p}),
      std::runtime_error);
  EXPECT_EQ(log.lines, (Lines{"fwd>bad"}));
}

TEST(Layer, ReturnsItsInputOrNothing) {
  const at::Tensor p = parameter({4});
  Log log;
  backward(layer("same", [](const auto& in) { return in[0]; }, {p * 2}).sum());
  EXPECT_EQ(log.lines, (Lines{"fwd>same", "fwd<same", "bwd>same", "bwd<same"}));
  EXPECT_FALSE(layer("none", [](const auto&) { return at::Tensor(); }, {p}).defined());
}

TEST(Layer, DoesNotHoldItsInputs) {
  const at::Tensor p = parameter({1024});
  at::Tensor made = p * 2;
  const Bytes before = testing::hand_device().memory().requested;
  const at::Tensor y = layer("a", [](const auto& in) { return in[0] + 1; }, {std::move(made)});
  EXPECT_EQ(testing::hand_device().memory().requested, before);  // one made, one gone
}

using Tensors = std::vector<at::Tensor>;

// Two outputs of one input.
Tensors pair(const std::string& path, const at::Tensor& x) {
  return layer(path, [](const auto& in) -> Tensors { return {in[0] * 2, in[0].exp()}; }, {x});
}

const Lines kOnce = {"fwd>pair", "fwd<pair", "bwd>pair", "bwd<pair"};

TEST(LayerOfSeveralOutputs, BeginsBackwardOnce) {
  const at::Tensor p = parameter({4});
  {
    Log log;
    const Tensors y = pair("pair", p);
    backward((y[0] * y[1]).sum());
    EXPECT_EQ(log.lines, kOnce);
  }
  for (const std::size_t used : {0U, 1U}) {
    Log log;  // the loss does not use the other one
    backward(pair("pair", p)[used].sum());
    EXPECT_EQ(log.lines, kOnce);
  }
}

TEST(LayerOfSeveralOutputs, PassesOnWhatNeedsNoGradient) {
  const at::Tensor p = parameter({4});
  at::Tensor positive;
  Log log;
  const Tensors y = layer("pair",
                          [&](const auto& in) -> Tensors {
                            positive = in[0] > 0;
                            return {at::Tensor(), positive, in[0] * 2};
                          },
                          {p});
  ASSERT_EQ(y.size(), 3U);
  EXPECT_FALSE(y[0].defined());
  EXPECT_TRUE(y[1].is_same(positive));
  backward(at::where(y[1], y[2], y[2] * 2).sum());
  EXPECT_EQ(log.lines, kOnce);
  EXPECT_TRUE(layer("none", [](const auto&) -> Tensors { return {}; }, {p}).empty());
}

// A graph that is kept is run by each output's own backward.
TEST(LayerOfSeveralOutputs, BeginsInEachBackward) {
  const at::Tensor p = parameter({4});
  Log log;
  const Tensors y = pair("pair", p);
  for (const std::size_t output : {0U, 1U, 1U}) {
    y[output].sum().backward({}, /*retain_graph=*/true);
  }
  EXPECT_EQ(log.lines, (Lines{"fwd>pair", "fwd<pair", "bwd>pair", "bwd<pair", "bwd>pair",
                              "bwd<pair", "bwd>pair", "bwd<pair"}));
}

// The second output's way back does not pass the first input.
TEST(LayerOfSeveralOutputs, EndsWithItsFirstInput) {
  const at::Tensor p = parameter({4});
  const at::Tensor q = parameter({4});
  const auto crossing = [](const auto& in) -> Tensors { return {in[0] * 2, in[1].exp()}; };
  {
    Log log;
    const Tensors y = layer("pair", crossing, {p, q});
    backward(y[0].sum() + y[1].sum());
    EXPECT_EQ(log.lines, kOnce);
  }
  {
    Log log;
    backward(layer("pair", crossing, {p, q})[1].sum());
    EXPECT_EQ(log.lines, (Lines{"fwd>pair", "fwd<pair", "bwd>pair"}));
  }
}

TEST(LayerOfSeveralOutputs, DoesNotHoldThem) {
  const at::Tensor p = parameter({1024});
  const at::NoGradGuard guard;
  const Bytes before = testing::hand_device().memory().requested;
  Tensors y = pair("pair", p);
  y.erase(y.begin());
  EXPECT_EQ(testing::hand_device().memory().requested - before, 4096);
}

TEST(RecordedLayers, TiedLayerCalledTwiceHasOneSiteACall) {
  const at::Tensor w = parameter({8, 8});
  const at::Tensor x = input({8, 8});
  const auto tied = [&](const at::Tensor& in) {
    return layer("tied", [&](const auto& i) { return at::linear(i[0], w).tanh(); }, {in});
  };
  HandStep step({w}, {x}, [&] {
    at::Tensor y = times_two("once", tied(tied(x))).exp().sum();
    return backward(y);
  });
  const Trace& trace = step.trace();
  Lines sites;
  for (const StringId site : trace.saved.site) sites.push_back(trace.string(site));
  // First call: linear saves its input alone (x needs no gradient), tanh its result. Second call:
  // linear saves the weight as well.
  EXPECT_EQ(sites, (Lines{"tied@0#0", "tied@0#1", "tied@1#0", "tied@1#1", "tied@1#2", "step#0"}));
  ASSERT_EQ(trace.layers.size(), 3U);
  EXPECT_EQ(trace.layers.calls, (std::vector<std::int32_t>{0, 2, 1}));
  testing::expect_exact_in_every_style(step);
}

TEST(RecordedLayers, NestedLayersHaveParentsAndOwnTheirPacks) {
  const at::Tensor p = parameter({8, 8});
  HandStep step({p}, {}, [&] {
    at::Tensor y = layer("outer",
                         [](const auto& in) {
                           const at::Tensor first = in[0].exp();
                           const at::Tensor inner = layer(
                               "outer.inner", [](const auto& i) { return i[0].tanh(); }, {first});
                           return inner.sigmoid();
                         },
                         {p});
    y = y.sum();
    return backward(y);
  });
  const Trace& trace = step.trace();
  Lines sites;
  for (const StringId site : trace.saved.site) sites.push_back(trace.string(site));
  EXPECT_EQ(sites, (Lines{"outer#0", "outer.inner#0", "outer#1"}));
  ASSERT_EQ(trace.layers.size(), 3U);
  EXPECT_EQ(trace.string(trace.layers.name[2]), "outer.inner");
  EXPECT_EQ(trace.layers.parent[2], LayerId(1));
  // Ops of backward belong to the layer of the op that they differentiate.
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    const std::string& name = trace.string(trace.ops.name[op]);
    if (name == "aten::tanh_backward") {
      EXPECT_EQ(trace.ops.layer[op], LayerId(2));
    } else if (name == "aten::sigmoid_backward") {
      EXPECT_EQ(trace.ops.layer[op], LayerId(1));
    }
  }
  testing::expect_exact_in_every_style(step);
}

// What the step saved and its parameters, all of it away whenever it is not used.
simulator::Decisions move_everything(const Trace& trace) {
  simulator::Decisions decisions = testing::offload_made(trace, testing::styles().front().decision);
  decisions.parameters.shard_of.assign(trace.storages.size(), -1);
  decisions.parameters.stream = simulator::ParameterPlan::Stream::always;
  decisions.parameters.prefetch = 0;
  std::int32_t shards = 0;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] == StorageClass::parameter) {
      decisions.parameters.shard_of[s] = shards++;
    }
  }
  return decisions;
}

std::int64_t events_of(const Trace& trace, EventKind kind) {
  return std::count(trace.events.kind.begin(), trace.events.kind.end(), kind);
}

// Like a residual stream: two tensors go from layer to layer. The last layer's second output is in
// no loss, and its third cannot be.
TEST(RecordedLayers, SeveralOutputsRunUnderEveryPlan) {
  const at::Tensor p = parameter({24, 24});
  const at::Tensor q = parameter({24, 24});
  const at::Tensor x = input({16, 24});
  HandStep step({p, q}, {x}, [&] {
    const auto both = [&](const auto& in) -> Tensors {
      const at::Tensor mixed = at::linear(in[0], p).tanh();
      return {mixed * in[1], at::mm(in[1], q).sigmoid(), mixed > 0};
    };
    Tensors y = layer("first", both, {x * 2, x * 3});
    y = layer("second", both, {y[0], y[1]});
    y = layer("third", both, {y[0], y[1]});
    const at::Tensor loss = at::where(y[2], y[0], y[0] * 2).pow(2).sum();
    y.clear();
    return backward(loss);
  });
  const Trace& trace = step.trace();
  EXPECT_EQ(events_of(trace, EventKind::layer_forward_begin), 3);
  EXPECT_EQ(events_of(trace, EventKind::layer_backward_begin), 3);
  EXPECT_EQ(events_of(trace, EventKind::layer_backward_end), 2);  // x needs no gradient
  testing::expect_exact_in_every_style(step);
  const auto lowering = step.lower(move_everything(trace));
  EXPECT_EQ(testing::parameters_of(lowering.schedule).size(), 2U);
  std::vector<testing::Outcome> references;
  for (std::int64_t k = 0; k < 3; ++k) references.push_back(step.plain(k));
  const auto plan = step.plan(lowering.schedule);
  for (std::int64_t k = 0; k < 3; ++k) {
    const testing::Outcome outcome = step.planned(*plan, k);
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    testing::expect_same(outcome, references[static_cast<std::size_t>(k)]);
  }
  plan->materialise();
}

}  // namespace
}  // namespace stowage
