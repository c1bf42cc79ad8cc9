// A loop of the user's own with one of PyTorch's optimizers, whose learning rate it sets from step
// to step: by hand, and by a scheduler of PyTorch's. A plan knows nothing of rates.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/layer.h"
#include "executor/planned_training.h"
#include "planner/planner.h"
#include "profiler/torch/record.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/or_throw.h"

namespace stowage {
namespace {

using executor::NamedTensor;
using testing::Bits;
using testing::hand_device;
using testing::or_throw;

constexpr std::int64_t kWidth = 48;
constexpr int kSteps = 6;

class OwnLoop {
 public:
  OwnLoop() {
    at::manual_seed(7);
    for (int i = 0; i < 4; ++i) weights_.push_back(testing::parameter({kWidth, kWidth}));
    adam_ = std::make_unique<torch::optim::AdamW>(weights_, torch::optim::AdamWOptions(1e-2));
  }

  void load(std::int64_t k) {
    at::manual_seed(static_cast<std::uint64_t>(k));
    x_.normal_();
  }
  void step() {
    adam_->zero_grad();
    at::Tensor y = x_;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      y = layer("layers." + std::to_string(i),
                // It may run again in backward, behind this loop.
                [this, i](const std::vector<at::Tensor>& in) {
                  return at::tanh(at::mm(in[0], weights_[i]));
                },
                {std::exchange(y, {})});
    }
    at::Tensor loss = y.pow(2).mean();
    y.reset();
    loss.backward();
    loss.reset();
    adam_->step();
  }

  [[nodiscard]] torch::optim::AdamW& adam() { return *adam_; }
  void set_rate(double rate) { adam_->param_groups().front().options().set_lr(rate); }

  [[nodiscard]] std::vector<NamedTensor> parameters() const {
    std::vector<NamedTensor> named;
    for (const at::Tensor& each : weights_) {
      named.push_back({"w" + std::to_string(named.size()), each});
    }
    return named;
  }
  [[nodiscard]] std::vector<NamedTensor> state() const {
    std::vector<NamedTensor> named;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const auto found = adam_->state().find(weights_[i].unsafeGetTensorImpl());
      if (found == adam_->state().end()) continue;
      const auto& own = static_cast<const torch::optim::AdamWParamState&>(*found->second);
      named.push_back({"w" + std::to_string(i) + ".exp_avg", own.exp_avg()});
      named.push_back({"w" + std::to_string(i) + ".exp_avg_sq", own.exp_avg_sq()});
    }
    return named;
  }
  [[nodiscard]] profiler::StepFunctions functions() {
    return {[this](std::int64_t k) { load(k); }, [this] { step(); },
            [this] {
              return profiler::RegisteredTensors{parameters(), {}, {{"x", x_}}, state()};
            }};
  }

  // All that lives from step to step.
  struct Saved {
    Bits tensors;
    std::int64_t count = 0;  // of updates
    bool operator==(const Saved&) const = default;
  };
  [[nodiscard]] Saved saved() const {
    Saved saved{{}, count()};
    for (const NamedTensor& each : tensors()) {
      saved.tensors.push_back(testing::fetch(hand_device(), each.tensor));
    }
    return saved;
  }
  void restore(const Saved& saved) {
    const std::vector<NamedTensor> to = tensors();
    for (std::size_t i = 0; i < to.size(); ++i) {
      testing::store(hand_device(), to[i].tensor, saved.tensors[i]);
    }
    for (auto& [key, state] : adam_->state()) {
      static_cast<torch::optim::AdamWParamState&>(*state).step(saved.count);
    }
  }

 private:
  [[nodiscard]] std::vector<NamedTensor> tensors() const {
    std::vector<NamedTensor> all = parameters();
    for (NamedTensor& each : state()) all.push_back(std::move(each));
    return all;
  }
  [[nodiscard]] std::int64_t count() const {
    return static_cast<const torch::optim::AdamWParamState&>(*adam_->state().begin()->second)
        .step();
  }

  at::Tensor x_ = testing::input({96, kWidth});
  std::vector<at::Tensor> weights_;
  std::unique_ptr<torch::optim::AdamW> adam_;
};

// Runs both loops' steps with rates that `set` sets ahead of each, in a plan's memory too.
void expect_same_under_a_plan(const std::function<void(OwnLoop&, int step)>& behind_step) {
  OwnLoop loop;
  auto recorded = profiler::record(hand_device(), loop.functions(), {}, {});
  ASSERT_TRUE(recorded.ok()) << recorded.error().text();
  const auto trace = std::make_shared<const Trace>(std::move(recorded).value());
  const OwnLoop::Saved begin = loop.saved();
  const auto train = [&](const std::function<void()>& step) {
    loop.restore(begin);
    loop.set_rate(1e-2);
    std::vector<OwnLoop::Saved> course;
    for (int k = 0; k < kSteps; ++k) {
      loop.load(k);
      step();
      behind_step(loop, k);
      course.push_back(loop.saved());
    }
    return course;
  };
  const auto plain = train([&] {
    hand_device().reset_peak();
    loop.step();
    EXPECT_EQ(hand_device().memory().peak_requested, trace->peaks.requested.front());
  });

  planner::PlanRequest request;
  request.budget_on = simulator::PeakKind::requested;
  request.allowed.gradients = false;
  request.allowed.parameters = false;
  request.allowed.optimizer = false;
  request.budget = 1;
  const simulator::StepIndex index(*trace);
  const Bytes floor = or_throw(planner::make_plan(index, request)).floor.bytes;
  request.budget = (floor + trace->peaks.requested.front()) / 2;
  const planner::PlanOutcome outcome = or_throw(planner::make_plan(index, request));
  ASSERT_EQ(outcome.kind, planner::PlanKind::planned);
  auto training = or_throw(
      executor::PlannedTraining::create(hand_device(), trace, outcome.plan, loop.parameters()));
  const auto planned = train([&] {
    hand_device().reset_peak();
    const auto report = training->run([&] { loop.step(); });
    ASSERT_TRUE(report.ok()) << report.error().text();
    EXPECT_TRUE(report->on_plan) << report->first_difference;
    EXPECT_EQ(report->memory.peak_requested, training->predicted().peak_requested);
  });
  for (std::size_t k = 0; k < plain.size(); ++k) {
    EXPECT_TRUE(planned[k] == plain[k]) << "step " << k;
  }
  EXPECT_FALSE(plain[0] == plain[1]);
}

TEST(OwnOptimizer, WhoseRateIsSetFromStepToStepIsBitwiseUnderAPlan) {
  expect_same_under_a_plan([](OwnLoop& loop, int k) { loop.set_rate(1e-2 / (k + 2)); });
}

TEST(OwnOptimizer, WithASchedulerOfPyTorchsIsBitwiseUnderAPlan) {
  std::unique_ptr<torch::optim::StepLR> scheduler;
  expect_same_under_a_plan([&](OwnLoop& loop, int k) {
    // A scheduler begins anew with each training.
    if (k == 0) scheduler = std::make_unique<torch::optim::StepLR>(loop.adam(), 2, 0.5);
    scheduler->step();
  });
}

}  // namespace
}  // namespace stowage
