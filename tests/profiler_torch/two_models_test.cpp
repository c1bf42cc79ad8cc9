// Several models of one process: planned steps that are stepped in turn, one within another, and
// beside what other threads run without a plan.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/layer.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage {
namespace {

using simulator::PlacementMode;
using testing::backward;
using testing::hand_device;
using testing::HandStep;
using testing::input;
using testing::parameter;

// Layers of one name in every net, so that a mix-up shows.
struct TwoLayerNet {
  explicit TwoLayerNet(std::int64_t width) : p(parameter({width, width})), x(input({8, width})) {}

  [[nodiscard]] at::Tensor forward() const {
    at::Tensor hidden = x * 2;
    for (const char* const path : {"first", "second"}) {
      hidden =
          layer(path, [this](const auto& in) { return at::linear(in[0], p).tanh(); }, {hidden});
    }
    return hidden.pow(2).sum();
  }

  at::Tensor p;
  at::Tensor x;
};

struct PlannedNet {
  explicit PlannedNet(std::int64_t width)
      : net(width), step({net.p}, {net.x}, [this] { return backward(net.forward()); }) {}
  PlannedNet(const PlannedNet&) = delete;
  PlannedNet& operator=(const PlannedNet&) = delete;

  void apply(const testing::Style& style, PlacementMode placement = PlacementMode::caching) {
    auto lowering = step.lower(testing::offload_made(step.trace(), style.decision));
    lowering.schedule.placement = placement;
    plan = step.plan(lowering.schedule);
    static_cast<void>(step.plain(0));  // the inputs are batch 0 from here on
    expected = testing::fetch(hand_device(), net.p.grad());
  }
  void begin() {
    plan->begin_step();
    net.p.mutable_grad().reset();
    loss = net.forward();
  }
  void run_backward() {
    loss.backward();
    loss.reset();
  }
  void end() {
    const auto report = plan->end_step();
    ASSERT_TRUE(report.ok()) << report.error().text();
    EXPECT_TRUE(report->on_plan) << report->first_difference;
    if (plan->memory() != nullptr) {
      EXPECT_GT(plan->memory()->report().served, 0);
      EXPECT_EQ(plan->memory()->report().conflicts, 0);
    }
    EXPECT_GT(report->offloaded_bytes, 0);
    EXPECT_TRUE(testing::fetch(hand_device(), net.p.grad()) == expected);
    memory = report->memory;
  }

  TwoLayerNet net;
  HandStep step;
  std::unique_ptr<executor::PlannedStep> plan;
  std::vector<char> expected;
  at::Tensor loss;
  executor::MemoryStats memory;  // of the last step
};

TEST(TwoModels, SteppedInTurnAreBitwise) {
  PlannedNet a(24);
  PlannedNet b(40);
  for (const testing::Style& style : testing::styles()) {
    SCOPED_TRACE(style.name);
    for (int repeat = 0; repeat < 4; ++repeat) {
      if (repeat % 2 == 0) {
        const bool is_placed = repeat > 0;  // both have planned memory at once
        a.apply(style, is_placed ? PlacementMode::planned : PlacementMode::caching);
        b.apply(style, is_placed ? PlacementMode::planned : PlacementMode::caching);
      }
      testing::change_delays();
      a.begin();
      b.begin();  // in front of a, whose step goes on
      a.plan->resume();
      a.run_backward();
      a.end();
      b.plan->resume();
      b.run_backward();
      b.end();
      EXPECT_EQ(executor::driver(), nullptr);
    }
  }
}

// A graph knows whose it is: its backward needs no resume().
TEST(TwoModels, BackwardOfOneWhileTheOtherIsCurrent) {
  PlannedNet a(24);
  PlannedNet b(40);
  a.apply(testing::styles()[1], PlacementMode::planned);
  b.apply(testing::styles()[1], PlacementMode::planned);
  a.begin();
  b.begin();
  a.run_backward();
  b.run_backward();
  a.end();
  EXPECT_EQ(executor::driver(), b.plan.get());
  b.end();
  EXPECT_EQ(executor::driver(), nullptr);
}

TEST(TwoModels, OneStepWithinAnother) {
  PlannedNet outer(24);
  PlannedNet inner(40);
  for (const PlacementMode placement : {PlacementMode::caching, PlacementMode::planned}) {
    outer.apply(testing::styles()[1], placement);
    inner.apply(testing::styles()[0], placement);
    outer.begin();
    for (int repeat = 0; repeat < 2; ++repeat) {
      inner.begin();
      inner.run_backward();
      inner.end();
      EXPECT_EQ(executor::driver(), outer.plan.get());
    }
    outer.run_backward();
    outer.end();
  }
}

// A step's peak is its own, whichever step begins behind it.
TEST(TwoModels, WhatWasBeforeTheOneWithinIsOfTheOneAroundAlone) {
  constexpr Bytes kLarge = Bytes{256} << 20;
  PlannedNet outer(24);
  PlannedNet inner(40);
  for (const PlacementMode placement : {PlacementMode::caching, PlacementMode::planned}) {
    outer.apply(testing::styles()[1], placement);
    inner.apply(testing::styles()[0], placement);
    outer.begin();
    static_cast<void>(
        at::empty({kLarge}, at::TensorOptions(hand_device().torch_device()).dtype(at::kByte)));
    inner.begin();
    outer.plan->resume();
    outer.run_backward();
    outer.end();
    inner.plan->resume();
    inner.run_backward();
    inner.end();
    EXPECT_GE(outer.memory.peak_requested, kLarge);
    EXPECT_LT(inner.memory.peak_requested, kLarge);
    outer.begin();
    outer.run_backward();
    outer.end();
    EXPECT_LT(outer.memory.peak_requested, kLarge) << "of the step before";
  }
}

// What another thread does, forward and backward, is no part of the step.
TEST(TwoModels, AnUnplannedOneOnAnotherThread) {
  PlannedNet planned(24);
  TwoLayerNet other(40);
  other.forward().backward();
  const std::vector<char> expected = testing::fetch(hand_device(), other.p.grad());
  const auto run_other = [&] {
    other.p.mutable_grad().reset();
    other.forward().backward();
    EXPECT_TRUE(testing::fetch(hand_device(), other.p.grad()) == expected);
    EXPECT_EQ(executor::driver(), nullptr);
  };
  for (const testing::Style& style : testing::styles()) {
    SCOPED_TRACE(style.name);
    planned.apply(style);
    for (int repeat = 0; repeat < 3; ++repeat) {
      testing::change_delays();
      planned.begin();
      std::async(std::launch::async, run_other).get();  // between forward and backward
      std::future<void> beside = std::async(std::launch::async, run_other);
      planned.run_backward();
      beside.get();
      planned.end();
    }
  }
}

// A step that begins on one thread and goes on on another one.
TEST(TwoModels, AStepThatChangesItsThread) {
  PlannedNet a(24);
  a.apply(testing::styles()[1]);
  for (int repeat = 0; repeat < 2; ++repeat) {
    a.begin();
    std::async(std::launch::async, [&] {
      a.plan->resume();
      a.run_backward();
      a.end();
    }).get();
    EXPECT_EQ(executor::driver(), nullptr);
  }
  static_cast<void>(a.step.planned(*a.plan, 0));
}

}  // namespace
}  // namespace stowage
