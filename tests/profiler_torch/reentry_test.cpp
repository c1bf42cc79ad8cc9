// User code that runs inside of an unpack hook, as a layer that is computed again does: under a
// driver of its own, on the step's thread, and on another one that it waits for.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "executor/kept_tensor.h"
#include "executor/layer.h"
#include "tests/profiler_torch/forwarding_device.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage {
namespace {

using testing::backward;
using testing::hand_device;
using testing::HandStep;
using testing::input;
using testing::parameter;

// Keeps what is saved, and counts.
class CountingDriver final : public executor::StepDriver {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override {
    return std::make_unique<Hooks>(*this);
  }
  void layer_event(executor::LayerEvent, std::string_view) override { ++layer_events; }
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(executor::UpdateEvent, const at::Tensor&) override {}

  int packs = 0;
  int unpacks = 0;
  int layer_events = 0;

 private:
  class Hooks final : public torch::autograd::SavedVariableHooks {
   public:
    explicit Hooks(CountingDriver& driver) : driver_(driver) {}
    void call_pack_hook(const at::Tensor& tensor) override {
      ++driver_.packs;
      kept_ = executor::KeptTensor(tensor);
    }
    at::Tensor call_unpack_hook() override {
      ++driver_.unpacks;
      return kept_.get();
    }

   private:
    CountingDriver& driver_;
    executor::KeptTensor kept_;
  };
};

// Runs user code where a reload is allocated: in an unpack hook, for a reload on demand.
class RunsUserCode final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override {
    if (user_code) std::exchange(user_code, nullptr)();  // for once: it may allocate as well
    return ForwardingDevice::allocate_buffer(bytes, tag);
  }
  std::function<void()> user_code;
};

TEST(Reentry, ALayerRunsAgainInsideOfAnUnpackHook) {
  const at::Tensor p = parameter({24, 24});
  const at::Tensor x = input({8, 24});
  const TensorFn fn = [&](const std::vector<at::Tensor>& in) {
    return at::linear(in[0], p).tanh().pow(2);
  };
  HandStep step({p}, {x}, [&] {
    const at::Tensor hidden = layer("first", fn, {x * 2});
    return backward(layer("second", fn, {hidden}).sum());
  });
  const auto lowering =
      step.lower(testing::offload_made(step.trace(), testing::styles()[1].decision));
  RunsUserCode device(hand_device());
  auto plan = executor::PlannedStep::create(device, std::make_shared<const Trace>(step.trace()),
                                            testing::in_test_memory(lowering.schedule), {},
                                            {.poison_host = true});
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  const testing::Outcome reference = step.plain(0);
  const std::vector<char> expected = testing::fetch(hand_device(), fn({x * 2}).detach());

  // Forward and backward of the layer, the plan knowing nothing of either.
  const auto run_again = [&](CountingDriver& driver) {
    const executor::InstalledDriver installed(driver);
    const at::AutoGradMode with_grad(true);
    const at::Tensor own = p.detach().clone().requires_grad_();
    const at::Tensor again =
        layer("first", [&](const auto& in) { return at::linear(in[0], own).tanh().pow(2); },
              {x.detach() * 2});
    EXPECT_TRUE(testing::fetch(hand_device(), again.detach()) == expected);
    again.sum().backward();
    EXPECT_EQ(driver.packs, driver.unpacks);
    EXPECT_GE(driver.packs, 3);
    EXPECT_EQ(driver.layer_events, 3);  // its input needs no gradient
  };
  int runs = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    testing::change_delays();
    device.user_code = [&] {
      ++runs;
      EXPECT_EQ(executor::driver(), plan->get());
      CountingDriver driver;
      // Autograd has one thread for a GPU, and the hook is on it: a backward that another thread
      // starts there would wait for the hook, as the hook does for it.
      if (repeat % 2 == 0 || testing::on_gpu()) {
        run_again(driver);
      } else {
        std::async(std::launch::async, [&] { run_again(driver); }).get();
      }
      EXPECT_EQ(executor::driver(), plan->get());
    };
    const testing::Outcome outcome = step.planned(**plan, 0);
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    testing::expect_same(outcome, reference);
  }
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(executor::driver(), nullptr);
}

// The same plan, from inside of its own work on the device: what comes then is not recorded, and
// leaves at once.
TEST(Reentry, TheStepItselfGoesOnInsideOfItsOwnWork) {
  const at::Tensor p = parameter({24, 24});
  const at::Tensor x = input({8, 24});
  HandStep step({p}, {x}, [&] {
    return backward(
        layer("first", [&](const auto& in) { return at::linear(in[0], p).tanh().pow(2); }, {x * 2})
            .sum());
  });
  const auto lowering =
      step.lower(testing::offload_made(step.trace(), testing::styles()[1].decision));
  RunsUserCode device(hand_device());
  auto plan = executor::PlannedStep::create(
      device, std::make_shared<const Trace>(step.trace()),
      testing::in_test_memory(lowering.schedule), {},
      {.off_plan = executor::OffPlan::offload_all, .poison_host = true});
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  const testing::Outcome reference = step.plain(0);
  for (int repeat = 0; repeat < 3; ++repeat) {
    testing::change_delays();
    device.user_code = [&] {
      const at::AutoGradMode with_grad(true);
      const at::Tensor own = p.detach().clone().requires_grad_();
      (own * own).tanh().sum().backward();
      const at::Tensor value = (p.detach() * p.detach()).tanh();
      const at::Tensor expected = (1 - value * value) * 2 * p.detach();
      EXPECT_TRUE(at::allclose(own.grad(), expected, 1e-4, 1e-5));
    };
    const testing::Outcome outcome = step.planned(**plan, 0);
    EXPECT_EQ(device.user_code, nullptr);
    EXPECT_FALSE(outcome.report.on_plan);
    EXPECT_GE(outcome.report.off_plan_packs, 3);
    testing::expect_same(outcome, reference);
    const testing::Outcome next = step.planned(**plan, 0);
    EXPECT_TRUE(next.report.on_plan) << next.report.first_difference;
    testing::expect_same(next, reference);
  }
}

}  // namespace
}  // namespace stowage
