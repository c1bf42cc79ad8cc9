// Recordings that end badly: a device that fails, ops of two threads at once, hooks that outlive
// their recorder.
#include "profiler/torch/step_recorder.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "profiler/assembly/join.h"
#include "tests/profiler_torch/failing_device.h"
#include "tests/profiler_torch/hand_step.h"

namespace stowage {
namespace {

using profiler::RecordMode;
using profiler::StepRecorder;
using testing::backward;
using testing::error_of;
using testing::FailingDevice;
using testing::hand_device;
using testing::HandStep;
using testing::parameter;

// The recorder goes away all the same, and the next recording is whole.
TEST(StepRecorder, EndsOnADeviceThatFailed) {
  const at::Tensor p = parameter({8, 8});
  FailingDevice device(hand_device());
  {
    StepRecorder recorder(device, RecordMode::keep);
    profiler::RegisteredTensors registered;
    registered.parameters = {{"p", p}};
    recorder.begin_step(registered);
    backward((p * 2).exp().sum());
    device.set_fails(true);
    EXPECT_NE(error_of([&] { static_cast<void>(recorder.end_step()); }).find("the device fails"),
              std::string::npos);
    EXPECT_EQ(executor::driver(), &recorder);
  }
  EXPECT_EQ(executor::driver(), nullptr);
  HandStep step({p}, {}, [&] { return backward((p * 2).exp().sum()); });
  testing::expect_exact_in_every_style(step);
}

TEST(StepRecorder, RefusesOpsOfTwoThreadsAtOnce) {
  const at::Tensor p = parameter({8, 8});
  const std::string text = error_of([&] {
    HandStep step({p}, {}, [&] {
      at::RecordFunction open(at::RecordScope::FUNCTION);
      if (open.isActive()) open.before("the_open_op");
      std::thread([&] { static_cast<void>(at::exp(p.detach())); }).join();
      open.end();
      return backward((p * 2).exp().sum());
    });
  });
  EXPECT_NE(text.find("two threads ran ops at once"), std::string::npos) << text;
  EXPECT_NE(text.find("the_open_op"), std::string::npos) << text;
}

// One after the other there is an order.
TEST(StepRecorder, TakesOpsOfTwoThreadsInTurn) {
  const at::Tensor p = parameter({8, 8});
  HandStep step({p}, {}, [&] {
    std::thread([&] { static_cast<void>(at::exp(p.detach())); }).join();
    return backward((p * 2).exp().sum());
  });
  testing::expect_exact_in_every_style(step);
}

// A graph of a recorded step is used and dropped when its recorder and its step are gone.
TEST(StepRecorder, HooksMayOutliveIt) {
  const at::Tensor p = parameter({8, 8});
  for (const RecordMode mode : {RecordMode::keep, RecordMode::offload_all}) {
    p.mutable_grad().reset();
    backward((p * 2).exp().sum());
    const at::Tensor expected = p.grad().detach().clone();
    p.mutable_grad().reset();
    at::Tensor used;
    at::Tensor dropped;
    std::optional<StepRecorder> recorder(std::in_place, hand_device(), mode);
    recorder->begin_step({});
    used = (p * 2).exp().sum();
    dropped = (p * 3).exp().sum();
    const auto pass = recorder->end_step();
    ASSERT_TRUE(pass.ok()) << pass.error().text();
    EXPECT_EQ(pass->saved.size(), 2U);
    EXPECT_TRUE(pass->unpacks.empty());
    recorder.reset();
    used.backward();
    EXPECT_TRUE(at::equal(p.grad(), expected));
    dropped.reset();
  }
}

// The pass whose times count runs the step as it is, saving as PyTorch does; every event of it is
// one of the structure pass's.
TEST(StepRecorder, ALightPassIsTheStepWithoutHooks) {
  const at::Tensor p = parameter({8, 8});
  const auto pass_of = [&](bool light) {
    StepRecorder recorder(hand_device(), RecordMode::keep, {.light = light});
    profiler::RegisteredTensors registered;
    registered.parameters = {{"p", p}};
    p.mutable_grad().reset();
    recorder.begin_step(registered);
    backward((p * 2).exp().mm(p.tanh()).sum());
    auto pass = recorder.end_step();
    if (!pass) throw std::runtime_error(pass.error().text());
    return std::move(pass).value();
  };
  const profiler::RawPass structure = pass_of(false);
  const profiler::RawPass light = pass_of(true);
  EXPECT_GT(structure.saved.size(), 3U);
  EXPECT_TRUE(structure.hooked);
  EXPECT_TRUE(light.saved.empty());
  EXPECT_FALSE(light.hooked);
  EXPECT_EQ(light.ops.size(), structure.ops.size());
  EXPECT_EQ(light.peak_requested, structure.peak_requested);
  const auto rows = profiler::align(structure, light);
  ASSERT_TRUE(rows.ok()) << rows.error().text();
  // Frees too: what autograd holds for the hooks it holds without them.
  const auto kinds = [](const profiler::RawPass& pass) {
    std::vector<profiler::RawKind> list;
    for (const profiler::RawEvent& each : pass.events) {
      if (each.kind != profiler::RawKind::pack && each.kind != profiler::RawKind::unpack) {
        list.push_back(each.kind);
      }
    }
    return list;
  };
  EXPECT_EQ(kinds(light), kinds(structure));
}

}  // namespace
}  // namespace stowage
