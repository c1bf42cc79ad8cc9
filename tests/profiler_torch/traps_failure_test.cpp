// Steps that end badly, steps that are not the recorded one, and processes that end while graphs
// live: nothing leaks, the next step is clean.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "executor/layer.h"
#include "tests/profiler_torch/failing_device.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage {
namespace {

using executor::OffPlan;
using testing::backward;
using testing::error_of;
using testing::expect_same;
using testing::hand_device;
using testing::HandStep;
using testing::input;
using testing::offload_made;
using testing::Outcome;
using testing::parameter;
using testing::styles;

enum class Fail { nowhere, in_forward, in_layer, in_backward, drops_the_graph };
Fail g_fail = Fail::nowhere;

struct FailsInBackward : torch::autograd::Function<FailsInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    if (g_fail == Fail::in_backward) throw std::runtime_error("the backward fails");
    return gradients;
  }
};

class BadEnd : public ::testing::TestWithParam<Fail> {};

TEST_P(BadEnd, LeaksNothingAndTheNextStepIsClean) {
  const at::Tensor p = parameter({48, 48});
  const at::Tensor x = input({48, 48});
  g_fail = Fail::nowhere;
  HandStep step({p}, {x}, [&] {
    at::Tensor hidden = x * 2;
    for (int i = 0; i < 4; ++i) {
      hidden = layer("layers." + std::to_string(i),
                     [&](const auto& in) {
                       const at::Tensor result = at::linear(in[0], p).tanh();
                       if (i == 2 && g_fail == Fail::in_layer)
                         throw std::runtime_error("the layer fails");
                       return result;
                     },
                     {hidden});
      if (i == 1) hidden = FailsInBackward::apply(hidden);
      if (i == 2 && g_fail == Fail::in_forward) throw std::runtime_error("the forward fails");
    }
    hidden = hidden.exp().sum();
    return g_fail == Fail::drops_the_graph ? 0.0 : backward(hidden);
  });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    for (const OffPlan off_plan : {OffPlan::refuse, OffPlan::offload_all}) {
      const auto lowering = step.lower(offload_made(step.trace(), style.decision));
      const auto plan = step.plan(lowering.schedule, off_plan);
      const Outcome reference = step.plain(0);
      const Bytes gradients = static_cast<Bytes>(p.nbytes());
      for (int repeat = 0; repeat < 3; ++repeat) {
        testing::change_delays();
        g_fail = GetParam();
        if (g_fail == Fail::drops_the_graph) {
          const Outcome outcome = step.planned(*plan, 0);
          EXPECT_EQ(outcome.end_error.empty(), off_plan == OffPlan::offload_all);
          EXPECT_FALSE(off_plan == OffPlan::offload_all && outcome.report.on_plan);
        } else {
          EXPECT_THROW(step.planned(*plan, 0), std::runtime_error);
        }
        // The gradient was reset ahead of the step and may or may not have been made again.
        const Bytes made = p.grad().defined() ? gradients : 0;
        EXPECT_EQ(hand_device().memory().requested, reference.end - gradients + made);
        g_fail = Fail::nowhere;
        static_cast<void>(step.plain(1));
        const Outcome next = step.planned(*plan, 0);
        expect_same(next, reference);
        EXPECT_TRUE(next.report.on_plan) << next.report.first_difference;
        EXPECT_EQ(next.end, reference.end);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadEnd,
                         ::testing::Values(Fail::in_forward, Fail::in_layer, Fail::in_backward,
                                           Fail::drops_the_graph));

// What a changed step changes, and the word that its refusal must contain.
struct Change {
  const char* name;
  const char* difference;
};

class Changed : public ::testing::TestWithParam<Change> {};

TEST_P(Changed, StepIsRefusedOrRunsOnAndSaysSo) {
  const std::string name = GetParam().name;
  const at::Tensor p = parameter({24, 24});
  const at::Tensor q = parameter({24, 24});
  const at::Tensor x = input({32, 24});
  const at::Tensor longer = input({40, 24});
  bool changed = false;
  HandStep step({p, q}, {x, longer}, [&] {
    const bool now = changed;
    const auto is = [&](const char* what) { return now && name == what; };
    const auto block = [&](const std::string& path, const at::Tensor& in, const at::Tensor& w) {
      return layer(path,
                   [&](const auto& inputs) {
                     at::Tensor result = at::linear(inputs[0], w);
                     return is("another_op") ? result.cos().mul(result) : result.tanh().mul(result);
                   },
                   {in});
    };
    at::Tensor hidden = (is("shape") ? longer : x) * 2;
    if (is("dtype")) {
      hidden = at::linear(hidden.to(at::kDouble), p.to(at::kDouble)).exp().to(at::kFloat);
    } else if (is("order")) {
      hidden = block("second", hidden, q);
    } else {
      hidden = at::linear(hidden, p).exp();
    }
    hidden = block("first", hidden.tanh(), p);
    if (!is("order") && !is("one_layer_less")) hidden = block("second", hidden, q);
    if (is("one_layer_more")) hidden = block("third", hidden, q);
    if (is("transposed")) hidden = (hidden.t().contiguous().t() * 2).tanh();
    hidden = hidden.tanh().pow(2).sum();
    return backward(hidden);
  });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    const auto strict = step.plan(lowering.schedule);
    const auto lenient = step.plan(lowering.schedule, OffPlan::offload_all, false);
    changed = true;
    const Outcome reference = step.plain(0);
    const std::string text = error_of([&] { step.planned(*strict, 0); });
    EXPECT_NE(text.find("not the one the plan was made for"), std::string::npos) << text;
    EXPECT_NE(text.find(GetParam().difference), std::string::npos) << text;
    static_cast<void>(step.plain(0));
    const Outcome outcome = step.planned(*lenient, 0);
    expect_same(outcome, reference);
    EXPECT_FALSE(outcome.report.on_plan);
    EXPECT_NE(outcome.report.first_difference.find(GetParam().difference), std::string::npos)
        << outcome.report.first_difference;
    EXPECT_GT(outcome.report.off_plan_packs, 0);
    EXPECT_EQ(outcome.end, reference.end);
    changed = false;
    const Outcome clean = step.plain(0);
    expect_same(step.planned(*strict, 0), clean);
    expect_same(step.planned(*lenient, 0), clean);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Changed,
    ::testing::Values(Change{"shape", "saved tensor 0 at step#0 is [40,24]"},
                      Change{"dtype", "has dtype float64, recorded was float32"},
                      Change{"order", "of layer second, recorded was first"},
                      Change{"another_op", "lies in another storage than recorded"},
                      Change{"one_layer_less", "recorded was"},
                      Change{"one_layer_more", "of layer third was not recorded"},
                      Change{"transposed", "with strides"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(UnsafeSchedule, IsRefusedBeforeAnythingRuns) {
  const at::Tensor p = parameter({8, 8});
  HandStep step({p}, {}, [&] { return backward((p * 2).exp().sum()); });
  auto lowering = step.lower(offload_made(step.trace(), styles().front().decision));
  std::erase_if(lowering.schedule.instructions, [](const simulator::Instruction& i) {
    return i.action == simulator::Action::await;
  });
  const std::string text = error_of([&] { static_cast<void>(step.plan(lowering.schedule)); });
  EXPECT_NE(text.find("the schedule is not safe to run"), std::string::npos) << text;
}

// The same shape and strides, at another place of the storage or in a bigger one: the copy would
// not cover it, or more would go than was planned.
struct OtherStorage {
  std::int64_t rows;  // of the storage, recorded with 48
  std::int64_t first;
  const char* difference;
};

class InAnotherStorage : public ::testing::TestWithParam<OtherStorage> {};

TEST_P(InAnotherStorage, ViewIsRefusedOrRunsOnAndSaysSo) {
  const at::Tensor p = parameter({24, 24});
  bool changed = false;
  HandStep step({p}, {}, [&] {
    const at::Tensor wide = p.repeat({changed ? GetParam().rows / 24 : 2, 1});
    return backward(wide.narrow(0, changed ? GetParam().first : 0, 32).pow(2).sum());
  });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    const auto strict = step.plan(lowering.schedule);
    const auto lenient = step.plan(lowering.schedule, OffPlan::offload_all, false);
    changed = true;
    const Outcome reference = step.plain(0);
    const std::string text = error_of([&] { step.planned(*strict, 0); });
    EXPECT_NE(text.find(GetParam().difference), std::string::npos) << text;
    static_cast<void>(step.plain(0));
    const Outcome outcome = step.planned(*lenient, 0);
    expect_same(outcome, reference);
    EXPECT_FALSE(outcome.report.on_plan);
    changed = false;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, InAnotherStorage,
    ::testing::Values(OtherStorage{48, 8, "starts at element 192 of its storage, recorded was 0"},
                      OtherStorage{72, 0, "has a storage of 6912 bytes, recorded were 4608"}));

// Two views of one storage leave in one copy, at the first one's pack. Where the storage ends ahead
// of the second one, that copy would read past it.
TEST(SmallerStorage, IsRefusedAheadOfItsCopy) {
  const at::Tensor p = parameter({24, 24});
  bool changed = false;
  HandStep step({p}, {}, [&] {
    const at::Tensor wide = p.repeat({changed ? 2 : 64, 1});
    const at::Tensor front = wide.narrow(0, 0, 24).pow(2).sum();
    const at::Tensor back = wide.narrow(0, changed ? 24 : 1512, 24).pow(2).sum();
    return backward(front + back);
  });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    const auto strict = step.plan(lowering.schedule);
    const auto lenient = step.plan(lowering.schedule, OffPlan::offload_all, false);
    changed = true;
    const Outcome reference = step.plain(0);
    const auto before = testing::copied(hand_device(), executor::CopyLane::d2h);
    const std::string text = error_of([&] { step.planned(*strict, 0); });
    EXPECT_NE(text.find("has a storage of 4608 bytes, recorded were 147456"), std::string::npos)
        << text;
    EXPECT_EQ(testing::copied(hand_device(), executor::CopyLane::d2h).bytes, before.bytes);
    static_cast<void>(step.plain(0));
    const Outcome outcome = step.planned(*lenient, 0);
    expect_same(outcome, reference);
    EXPECT_FALSE(outcome.report.on_plan);
    changed = false;
  }
}

// A graph that outlives its step: what stayed can be used, what left is an error, not old bytes.
TEST(GraphAfterItsStep, GivesItsTensorsOrAnError) {
  const at::Tensor p = parameter({16, 16});
  at::Tensor held;
  bool hold = false;
  HandStep step({p}, {}, [&] {
    at::Tensor loss = (p * 2).exp().sum();
    if (hold) held = (p * 3).exp().sum();
    return backward(loss);
  });
  const auto lowering = step.lower(offload_made(step.trace(), styles()[1].decision));
  auto plan = step.plan(lowering.schedule, OffPlan::offload_all);
  const Outcome reference = step.plain(0);
  hold = true;
  expect_same(step.planned(*plan, 0), reference);  // the held graph left through host copies
  hold = false;
  plan.reset();
  EXPECT_NO_THROW(held.backward());
  held.reset();

  at::Tensor graph;
  HandStep again({p}, {}, [&] {
    graph = (p * 2).exp().sum();
    graph.backward({}, /*retain_graph=*/true);
    return 0.0;
  });
  graph.reset();
  plan = again.plan(again.lower(offload_made(again.trace(), styles()[1].decision)).schedule);
  static_cast<void>(again.planned(*plan, 0));
  EXPECT_NE(error_of([&] { graph.backward(); }).find("after its step"), std::string::npos);
  plan.reset();
  EXPECT_NE(error_of([&] { graph.backward(); }).find("after its step"), std::string::npos);
}

// What an unfinished step left behind, a graph included, is dropped when the next one begins.
TEST(UnfinishedStep, IsDroppedByTheNextBegin) {
  const at::Tensor p = parameter({32, 32});
  HandStep step({p}, {}, [&] {
    const at::Tensor loss = ((p * 2).exp() * p).sum();
    return backward(loss);
  });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto plan = step.plan(step.lower(offload_made(step.trace(), style.decision)).schedule);
    const Outcome reference = step.plain(0);
    plan->begin_step();
    at::Tensor unfinished = ((p * 2).exp() * p).sum();
    const Outcome outcome = step.planned(*plan, 0);
    expect_same(outcome, reference);
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    unfinished.reset();
    EXPECT_EQ(hand_device().memory().requested, reference.end);
  }
}

std::unique_ptr<executor::PlannedStep> plan_on(executor::Device& device, const HandStep& step) {
  const auto lowering = step.lower(offload_made(step.trace(), styles()[1].decision));
  auto plan = executor::PlannedStep::create(device, std::make_shared<const Trace>(step.trace()),
                                            testing::in_test_memory(lowering.schedule), {},
                                            {.poison_host = true});
  if (!plan) throw std::runtime_error(plan.error().text());
  return std::move(plan).value();
}

// A plan that runs nothing leaves the device to the one that does.
TEST(IdlePlan, DoesNotEndTheStepOfAnother) {
  const at::Tensor p = parameter({16, 16});
  HandStep step({p}, {}, [&] { return backward((p * 2).exp().sum()); });
  testing::FailingDevice device(hand_device());
  const auto runs = plan_on(device, step);
  auto idle = plan_on(device, step);
  p.mutable_grad().reset();
  runs->begin_step();
  idle->abort_step();
  EXPECT_TRUE(device.in_step());
  EXPECT_EQ(executor::driver(), runs.get());
  idle.reset();
  EXPECT_TRUE(device.in_step());
  backward((p * 2).exp().sum());
  const auto report = runs->end_step();
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_TRUE(report->on_plan) << report->first_difference;
  EXPECT_FALSE(device.in_step());
}

// Whatever call fails, the driver is removed and the device's step is over.
TEST(FailedDevice, LeavesNoStepBehind) {
  const at::Tensor p = parameter({16, 16});
  HandStep step({p}, {}, [&] { return backward((p * 2).exp().sum()); });
  testing::FailingDevice device(hand_device());
  auto plan = plan_on(device, step);
  const Outcome reference = step.plain(0);
  const auto expect_failure = [&](const std::function<void()>& body) {
    device.set_fails(true);
    EXPECT_NE(error_of(body).find("the device fails"), std::string::npos);
    EXPECT_FALSE(device.in_step());
    EXPECT_EQ(executor::driver(), nullptr);
    device.set_fails(false);
    expect_same(step.planned(*plan, 0), reference);
  };
  expect_failure([&] { plan->begin_step(); });
  plan->begin_step();
  p.mutable_grad().reset();
  backward((p * 2).exp().sum());
  expect_failure([&] { static_cast<void>(plan->end_step()); });
  plan->begin_step();
  expect_failure([&] { plan->abort_step(); });
  plan->begin_step();
  device.set_fails(true);
  plan.reset();
  EXPECT_FALSE(device.in_step());
  EXPECT_EQ(executor::driver(), nullptr);
}

// A GPU writes down every allocation until its setup is over. A run from a saved trace never
// records, so its first step ends the setup, however it goes.
TEST(PlannedFromASavedTrace, EndsTheDevicesSetup) {
  class SetupWatch final : public testing::ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    void end_setup() override { ++ends; }
    int ends = 0;
  };
  const at::Tensor p = parameter({16, 16});
  HandStep step({p}, {}, [&] { return backward((p * 2).exp().sum()); });
  SetupWatch device(hand_device());
  const auto plan = plan_on(device, step);
  EXPECT_EQ(device.ends, 0);
  static_cast<void>(step.planned(*plan, 0));
  EXPECT_EQ(device.ends, 1);
  plan->begin_step();
  plan->abort_step();
  EXPECT_EQ(device.ends, 2);
}

// A process that has recorded nothing: a plan of an empty step sees the saved tensors all the same.
[[noreturn]] void run_without_recording() {
  const at::Tensor p = parameter({16, 16});
  Trace trace;
  trace.strings = {"step"};
  trace.layers.name = {StringId(0)};
  trace.events.kind = {EventKind::step_begin, EventKind::step_end};
  trace.events.ref = {-1, -1};
  trace.events.op = {OpId(), OpId()};
  trace.events.time = {0, 0};
  auto plan = executor::PlannedStep::create(hand_device(), std::make_shared<const Trace>(trace), {},
                                            {}, {.off_plan = OffPlan::offload_all});
  if (!plan) std::exit(2);
  (*plan)->begin_step();
  backward((p * 2).exp().sum());
  const auto report = (*plan)->end_step();
  std::exit(report.ok() && report->off_plan_packs == 1 ? 0 : 1);
}

TEST(FreshProcessDeathTest, PlanWorksWithoutARecording) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_without_recording(), ::testing::ExitedWithCode(0), "");
}

at::Tensor& static_graph() {
  static at::Tensor graph;
  return graph;
}

// Ends the process while a static object holds a graph whose hooks belong to a dead plan.
[[noreturn]] void end_with_a_living_graph(const testing::Style& style, bool step_ended) {
  static_graph();  // dies after everything that is made from here on
  const at::Tensor p = parameter({16, 16});
  {
    bool hold = false;
    HandStep step({p}, {}, [&] {
      at::Tensor loss = ((p * 2).exp() * p).sum();
      loss.backward({}, /*retain_graph=*/true);
      if (hold) static_graph() = loss;
      return 0.0;
    });
    const auto plan = step.plan(step.lower(offload_made(step.trace(), style.decision)).schedule);
    hold = true;
    if (step_ended) {
      static_cast<void>(step.planned(*plan, 0));
    } else {
      plan->begin_step();
      static_graph() = ((p * 2).exp() * p).sum();
    }
  }
  std::exit(static_graph().defined() ? 0 : 1);
}

TEST(ShutdownDeathTest, IsCleanWhileAStaticObjectHoldsAGraph) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_with_a_living_graph(styles()[0], true), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end_with_a_living_graph(styles()[2], false), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stowage
