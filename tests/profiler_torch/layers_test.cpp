// layer(): where a step's layers begin and end, as the driver hears it and as a trace tells it.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/layer.h"
#include "executor/step_driver.h"
#include "tests/profiler_torch/hand_step.h"

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

}  // namespace
}  // namespace stowage
