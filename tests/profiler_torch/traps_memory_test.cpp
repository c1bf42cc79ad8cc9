// Memory over steps: host slots that are reused, budgets that hold, passes and threads outside the
// plan, and no host memory after the plan was made.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/layer.h"
#include "profiler/torch/record.h"
#include "simulator/replay/replay.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using executor::CopyLane;
using executor::CopyTicket;
using testing::backward;
using testing::expect_same;
using testing::hand_device;
using testing::HandStep;
using testing::input;
using testing::offload_made;
using testing::Outcome;
using testing::parameter;
using testing::styles;

TEST(ReloadRightAfterOffload, IsExact) {
  const at::Tensor p = parameter({128, 128});
  HandStep step({p}, {}, [&] {
    at::Tensor loss = (p * 2).exp().sum();  // packed last, unpacked first
    return backward(loss);
  });
  for (int repeat = 0; repeat < 20; ++repeat) {
    testing::change_delays();
    for (const std::size_t style : {1U, 4U, 6U}) {
      testing::expect_exact(step, offload_made(step.trace(), styles()[style].decision));
    }
  }
}

// Several forwards and backwards in one step: a slot's second owner begins when the first one's
// last reload was awaited.
TEST(HostSlots, AreReusedWithinAStep) {
  const at::Tensor p = parameter({96, 96});
  const at::Tensor x = input({96, 96});
  HandStep step({p}, {x}, [&] {
    double loss = 0;
    for (int i = 1; i < 5; ++i) {
      at::Tensor hidden = at::linear(x * i, p).exp();
      hidden = at::linear(hidden.tanh(), p).sigmoid().sum();
      loss += backward(hidden);
    }
    return loss;
  });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    Bytes sum = 0;
    for (const auto& offload : testing::offloads_of(lowering.schedule)) sum += offload.bytes;
    EXPECT_LT(lowering.schedule.host_bytes, sum);
    for (int repeat = 0; repeat < 4; ++repeat) {
      testing::expect_exact(step, offload_made(step.trace(), style.decision));
    }
  }
}

double chain(const at::Tensor& x, const std::vector<at::Tensor>& weights) {
  at::Tensor hidden = x * 2;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    hidden =
        layer("layers." + std::to_string(i),
              [&, i](const auto& in) { return at::linear(in[0], weights[i]).tanh(); }, {hidden});
  }
  hidden = hidden.pow(2).sum();
  return at::GradMode::is_enabled() ? backward(hidden) : hidden.item().toDouble();
}

std::vector<at::Tensor> square_weights(int count) {
  std::vector<at::Tensor> weights;
  for (int i = 0; i < count; ++i) weights.push_back(parameter({32, 32}));
  return weights;
}

TEST(NoGradPass, BetweenStepsConsumesNothingOfThePlan) {
  const auto weights = square_weights(4);
  const at::Tensor x = input({64, 32});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto plan = step.plan(step.lower(offload_made(step.trace(), style.decision)).schedule);
    for (std::int64_t k = 0; k < 3; ++k) {
      const Outcome reference = step.plain(k);
      const Outcome outcome = step.planned(*plan, k);
      expect_same(outcome, reference);
      EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
      EXPECT_EQ(outcome.end_error, "");
      {
        const at::NoGradGuard guard;
        EXPECT_EQ(chain(x, weights), reference.loss);
      }
      static_cast<void>(chain(x, {weights[0]}));  // neither does a step outside the plan
      for (const at::Tensor& weight : weights) weight.mutable_grad().reset();
    }
  }
}

// No part of the plan belongs to a thread.
TEST(Threads, ForwardAndBackwardOnDifferentOnes) {
  const auto weights = square_weights(3);
  const at::Tensor x = input({64, 32});
  HandStep step(weights, {x}, [&] {
    at::Tensor hidden = x * 2;
    for (const at::Tensor& weight : weights) hidden = at::linear(hidden, weight).tanh();
    hidden = hidden.pow(2).sum();
    std::thread([&] { hidden.backward(); }).join();
    return hidden.item().toDouble();
  });
  testing::expect_exact_in_every_style(step);
}

// Exact to the byte, as the CPU device's limit is; a GPU's is on whole segments (tests/gpu).
TEST(Budget, PlannedStepFitsAndTheUnplannedOneDoesNot) {
  if (testing::on_gpu()) GTEST_SKIP() << "a GPU's limit is on segments, see tests/gpu";
  const auto weights = square_weights(8);
  const at::Tensor x = input({256, 32});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  const auto lowering = step.lower(offload_made(step.trace(), styles()[1].decision));
  const Bytes peak = simulator::replay(step.index(), lowering.schedule).peak_requested;
  const auto plan = step.plan(lowering.schedule);
  const Outcome reference = step.plain(0);
  ASSERT_LT(peak, reference.peak);
  for (int repeat = 0; repeat < 6; ++repeat) {
    hand_device().set_memory_limit(peak);
    EXPECT_THROW(step.plain(0), c10::OutOfMemoryError);
    const Outcome outcome = step.planned(*plan, 0);
    hand_device().set_memory_limit(peak - 1);
    EXPECT_THROW(step.planned(*plan, 0), c10::OutOfMemoryError);
    hand_device().set_memory_limit(0);
    expect_same(outcome, reference);
    EXPECT_EQ(outcome.peak, peak);
    EXPECT_EQ(outcome.end, reference.end);
    static_cast<void>(step.plain(0));
  }
}

// The device, with every copy's host address written down.
class WatchedDevice final : public executor::Device {
 public:
  explicit WatchedDevice(executor::Device& device) : device_(device) {}

  c10::Device torch_device() const override { return device_.torch_device(); }
  void describe(Environment& environment) const override { device_.describe(environment); }
  void set_memory_limit(Bytes limit) override { device_.set_memory_limit(limit); }
  std::optional<simulator::ObservedAllocator> observed_allocator() const override {
    return device_.observed_allocator();
  }
  executor::SetupHistory setup_history() const override { return device_.setup_history(); }
  void begin_first_step() override { device_.begin_first_step(); }
  void end_setup() override { device_.end_setup(); }
  [[nodiscard]] simulator::PageChoice page_choice() const override { return device_.page_choice(); }
  [[nodiscard]] Result<std::unique_ptr<executor::StepMemory>> step_memory(
      simulator::MemoryLayout layout) override {
    return device_.step_memory(std::move(layout));
  }
  void release_cache() override { device_.release_cache(); }
  std::vector<executor::LibraryWorkspace> release_workspaces() override {
    return device_.release_workspaces();
  }
  void take_workspaces(const std::vector<executor::LibraryWorkspace>& workspaces) override {
    device_.take_workspaces(workspaces);
  }
  [[nodiscard]] Bytes used_bytes() const override { return device_.used_bytes(); }
  Result<executor::HostArena> host_arena(Bytes bytes) override { return device_.host_arena(bytes); }
  void synchronize_compute() override { device_.synchronize_compute(); }
  executor::MemoryStats memory() const override { return device_.memory(); }
  void reset_peak() override { device_.reset_peak(); }
  void set_listener(executor::AllocationListener* listener) override {
    device_.set_listener(listener);
  }
  std::int64_t allocation_serial(const void* data) const override {
    return device_.allocation_serial(data);
  }
  std::int64_t next_serial() const override { return device_.next_serial(); }
  std::vector<executor::LiveAllocation> live_allocations() const override {
    return device_.live_allocations();
  }
  at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override {
    return device_.allocate_buffer(bytes, tag);
  }
  CopyTicket copy_async(CopyLane lane, void* destination, const void* source,
                        Bytes bytes) override {
    const auto* const host =
        static_cast<const std::byte*>(lane == CopyLane::d2h ? destination : source);
    addresses_.insert(host);
    addresses_.insert(host + bytes);
    return device_.copy_async(lane, destination, source, bytes);
  }
  void begin_step() override { device_.begin_step(); }
  void end_step() override { device_.end_step(); }
  void check_stream() const override { device_.check_stream(); }
  void fill_on_compute(void* destination, std::byte value, Bytes bytes) override {
    device_.fill_on_compute(destination, value, bytes);
  }
  std::vector<std::string> warnings() const override { return device_.warnings(); }
  void wait(CopyTicket ticket) override { device_.wait(ticket); }
  void copy_on_compute(void* destination, const void* source, Bytes bytes) override {
    device_.copy_on_compute(destination, source, bytes);
  }
  void wait_blocking(CopyTicket ticket) override { device_.wait_blocking(ticket); }
  void wait_elsewhere(CopyTicket ticket) override { device_.wait_elsewhere(ticket); }
  void stand_still(const std::function<void()>& wait) override { device_.stand_still(wait); }
  void synchronize() override { device_.synchronize(); }
  void time_stalls(bool timed) override { device_.time_stalls(timed); }
  Nanoseconds stall_ns() const override { return device_.stall_ns(); }

  // First and last host byte of every copy since the last call.
  std::set<const std::byte*> take_addresses() { return std::exchange(addresses_, {}); }

 private:
  executor::Device& device_;
  std::set<const std::byte*> addresses_;
};

TEST(HostArena, IsTheSchedulesAndTheSameInEveryStep) {
  const auto weights = square_weights(5);
  const at::Tensor x = input({64, 32});
  HandStep step(weights, {x}, [&] { return chain(x, weights); });
  for (const std::size_t style : {0U, 1U, 3U, 6U}) {
    const auto lowering = step.lower(offload_made(step.trace(), styles()[style].decision));
    const auto& schedule = lowering.schedule;
    WatchedDevice device(hand_device());
    auto plan =
        executor::PlannedStep::create(device, std::make_shared<const Trace>(step.trace()),
                                      testing::in_test_memory(schedule), {}, {.poison_host = true});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ((*plan)->host_bytes(), schedule.host_bytes);
    EXPECT_EQ(simulator::replay(step.index(), schedule).host_bytes, schedule.host_bytes);
    std::set<const std::byte*> first;
    std::int64_t allocations = 0;
    Bytes peak = 0;
    for (std::int64_t k = 0; k < 5; ++k) {
      const std::int64_t before = hand_device().memory().allocations;
      const Outcome outcome = step.planned(**plan, k);
      const std::int64_t made = hand_device().memory().allocations - before;
      const auto addresses = device.take_addresses();
      ASSERT_FALSE(addresses.empty());
      if (k == 0) {
        first = addresses;
        allocations = made;
        peak = outcome.peak;
      }
      EXPECT_EQ(addresses, first);
      EXPECT_LE(*addresses.rbegin() - *addresses.begin(), schedule.host_bytes);
      EXPECT_EQ(made, allocations);
      EXPECT_EQ(outcome.peak, peak);
    }
    plan->reset();
    hand_device().synchronize();
  }
}

// record(), as a user's own loop calls it.
TEST(Record, GivesATraceThatPlansRunOn) {
  const auto weights = square_weights(3);
  const at::Tensor x = input({64, 32});
  profiler::StepFunctions functions;
  functions.step = [&] {
    for (const at::Tensor& weight : weights) weight.mutable_grad().reset();
    chain(x, weights);
  };
  functions.registered = [&] {
    profiler::RegisteredTensors registered;
    for (const at::Tensor& weight : weights) registered.parameters.push_back({"w", weight});
    return registered;
  };
  stowage::Run run;
  run.model = "mine";
  auto recorded = profiler::record(hand_device(), functions, run,
                                   {.passes = {.warmup = 1, .steps = 2, .structure = 2}});
  ASSERT_TRUE(recorded.ok()) << recorded.error().text();
  const auto trace = std::make_shared<const Trace>(std::move(recorded).value());
  EXPECT_EQ(trace->run.model, "mine");
  EXPECT_EQ(trace->run.source, "recorded");
  EXPECT_EQ(trace->run.threads, 1);
  // What a replay of a GPU's allocator starts from; without it active bytes are guessed.
  EXPECT_EQ(trace->setup.size() > 0, testing::on_gpu());
  const simulator::StepIndex index(*trace);
  const auto lowering = simulator::lower(index, offload_made(*trace, styles()[1].decision));
  ASSERT_TRUE(lowering.ok());
  auto plan = executor::PlannedStep::create(hand_device(), trace,
                                            testing::in_test_memory(lowering->schedule), {});
  ASSERT_TRUE(plan.ok());
  hand_device().reset_peak();
  (*plan)->begin_step();
  functions.step();
  const auto report = (*plan)->end_step();
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_TRUE(report->on_plan);
  EXPECT_EQ(report->memory.peak_requested,
            simulator::replay(index, lowering->schedule).peak_requested);
}

}  // namespace
}  // namespace stowage
