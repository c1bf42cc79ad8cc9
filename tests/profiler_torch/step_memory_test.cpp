// Steps whose allocations lie where the plan's placement has them, and user code that does what was
// not recorded: it keeps tensors, allocates more, leaves the plan, steps two models in turn.
#include "executor/device/step_memory.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "executor/device/tracked_allocator.h"
#include "executor/layer.h"
#include "simulator/replay/replay.h"
#include "tests/profiler_torch/forwarding_device.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/recorded_model.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/or_throw.h"

namespace stowage {
namespace {

using executor::OffPlan;
using simulator::HandOutReport;
using simulator::PlacementMode;
using testing::backward;
using testing::HandStep;
using testing::input;
using testing::Outcome;
using testing::parameter;

// Hands its saved tensor to somebody: under a plan that offloads, a buffer that was loaded.
struct ShowsWhatIsLoaded : torch::autograd::Function<ShowsWhatIsLoaded> {
  using Show = std::function<void(const at::Tensor&)>;
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const Show* show) {
    ctx->save_for_backward({x});
    ctx->saved_data["show"] = reinterpret_cast<std::int64_t>(show);
    return x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    (*reinterpret_cast<const Show*>(ctx->saved_data["show"].toInt()))(x);
    return {gradients[0] * x * 2, {}};
  }
};

// Two layers; somebody may keep what a step makes, by its name.
struct Net {
  at::Tensor p = parameter({16, 16});
  at::Tensor q = parameter({16, 16});
  at::Tensor x = input({32, 16});
  std::string kept_name;  // of what is kept from now on
  std::vector<at::Tensor> kept;
  std::vector<at::Tensor> copies;  // of it, made at once
  bool allocates = false;
  bool differs = false;
  std::function<void()> between = [] {};  // the layers
  ShowsWhatIsLoaded::Show show = [this](const at::Tensor& loaded) { keep("loaded", loaded); };
  std::unique_ptr<HandStep> step;

  Net() {
    step = std::make_unique<HandStep>(std::vector{p, q}, std::vector{x}, [this] { return run(); });
  }
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  void keep(const std::string& name, const at::Tensor& tensor) {
    if (kept_name != name) return;
    kept_name.clear();
    kept.push_back(tensor.detach());
    copies.push_back(tensor.detach().clone());
  }

  void forget() {
    kept.clear();
    copies.clear();  // they may lie there as well: what they were allocated for had their size
  }

  double run() {
    at::Tensor hidden =
        layer("first", [&](const auto& in) { return at::linear(in[0], p).tanh(); }, {x * 2});
    keep("activation", hidden);
    const at::Tensor scaled = hidden * 3;  // nobody saves it
    keep("temporary", scaled);
    hidden = scaled - 1;
    hidden.register_hook([this](const at::Tensor& gradient) { keep("backward's own", gradient); });
    if (allocates) at::exp(p.detach().flatten().slice(0, 0, 199));
    between();
    if (differs) hidden = hidden.exp();
    hidden = layer("second",
                   [&](const auto& in) {
                     return at::linear(ShowsWhatIsLoaded::apply(in[0], &show), q).sigmoid();
                   },
                   {hidden});
    const at::Tensor loss = hidden.pow(2).sum();
    keep("loss", loss);
    const double value = backward(loss);
    keep("gradient", p.grad());
    return value;
  }

  [[nodiscard]] std::unique_ptr<executor::PlannedStep> plan(OffPlan off_plan = OffPlan::refuse) {
    auto lowered =
        step->lower(testing::offload_made(step->trace(), testing::styles().front().decision));
    lowered.schedule.placement = PlacementMode::planned;
    return step->plan(lowered.schedule, off_plan);
  }
  // Batch number k: what the plain step does.
  Outcome expect_same(executor::PlannedStep& plan, std::int64_t k) {
    const std::string name = std::exchange(kept_name, "");
    const Outcome reference = step->plain(k);
    kept_name = name;
    Outcome outcome = step->planned(plan, k);
    testing::expect_same(outcome, reference);
    EXPECT_EQ(outcome.end_error, "");
    return outcome;
  }
};

class StepMemoryTest : public ::testing::Test {
 protected:
  // Of the CPU device how many plans have memory; of a GPU what is taken from its driver.
  static std::int64_t regions() {
    executor::Device& device = testing::hand_device();
    if (device.torch_device().is_cpu()) {
      return static_cast<std::int64_t>(
          testing::or_throw(executor::TrackedAllocator::install())->regions());
    }
    device.release_cache();
    return device.memory().reserved;
  }
  // Of planned memory; of a GPU with all else that is taken from its driver.
  static Bytes region_bytes() {
    executor::Device& device = testing::hand_device();
    if (!device.torch_device().is_cpu()) return regions();
    return testing::or_throw(executor::TrackedAllocator::install())->region_bytes();
  }
};

// A batch by which a plan of such a model is mostly of what a step makes, beside a GPU's
// workspaces.
std::int64_t most_of_it_idle() {
  return testing::hand_device().torch_device().is_cpu() ? 512 : 4096;
}

// Between steps, on a device that has no more than it has given out.
void ask_for_memory(Bytes bytes) {
  executor::Device& device = testing::hand_device();
  if (device.torch_device().is_cpu()) {
    // A machine's memory cannot be made to end here; its allocator asks likewise.
    EXPECT_TRUE(testing::or_throw(executor::TrackedAllocator::install())->lend());
    return;
  }
  device.release_cache();
  device.set_memory_limit(device.memory().reserved);
  const auto options = at::TensorOptions(device.torch_device()).dtype(at::kByte);
  EXPECT_EQ(at::empty({bytes}, options).numel(), bytes);
  device.set_memory_limit(0);
}

// Somebody who keeps one tensor keeps its pages, not the whole plan's.
TEST_F(StepMemoryTest, GivesBackThePagesThatNobodyKeeps) {
  constexpr int kLayers = 16;
  constexpr Bytes kTensor = Bytes{8} << 20;
  const at::Tensor p = parameter({1024, 2048});
  at::Tensor kept;
  bool keeps = false;
  HandStep step({p}, {}, [&] {
    at::Tensor x = p * 2;
    for (int i = 0; i < kLayers; ++i) {
      x = x.tanh();
      if (keeps && i == kLayers / 2) kept = x.detach();
    }
    return backward(x.sum());
  });
  auto schedule = simulator::resident_schedule(step.index(), PlacementMode::planned);
  auto plan = step.plan(std::move(schedule));
  keeps = true;
  static_cast<void>(step.planned(*plan, 0));
  keeps = false;
  const Bytes planned = region_bytes();
  EXPECT_GE(planned, kLayers * kTensor);
  const at::Tensor copy = kept.clone();
  plan.reset();
  // Of a GPU the parameter and its gradient are back in segments of the caching allocator.
  EXPECT_LE(region_bytes(), planned - (kLayers - 8) * kTensor);
  EXPECT_TRUE(at::equal(kept, copy));
  if (testing::hand_device().torch_device().is_cpu()) {
    EXPECT_EQ(region_bytes(), kTensor);
    kept.reset();
    EXPECT_EQ(region_bytes(), 0);
  }
}

class FullDevice final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override {
    if (is_full) TORCH_CHECK_WITH(OutOfMemoryError, false, "the device is full");
    return ForwardingDevice::allocate_buffer(bytes, tag);
  }
  bool is_full = false;
};

// How much planned memory there was at each buffer that somebody took.
class WatchedDevice final : public testing::ForwardingDevice {
 public:
  WatchedDevice(executor::Device& device, std::function<Bytes()> planned)
      : ForwardingDevice(device), planned_(std::move(planned)) {}
  [[nodiscard]] at::Tensor allocate_buffer(Bytes bytes, std::int64_t tag) override {
    if (watches) seen.push_back(planned_());
    return ForwardingDevice::allocate_buffer(bytes, tag);
  }
  bool watches = false;
  std::vector<Bytes> seen;

 private:
  std::function<Bytes()> planned_;
};

// Parameters that cannot leave a plan's memory stay there, and they alone.
TEST_F(StepMemoryTest, IsLeftWhereTheDeviceIsFull) {
  testing::TwinSessions twins("mlp:layers=4,width=64", 32, "sgd");
  FullDevice device(twins.device());
  const Bytes before = region_bytes();
  auto plan = executor::PlannedStep::create(
      device, std::make_shared<const Trace>(twins.trace()),
      simulator::resident_schedule(twins.index(), PlacementMode::planned),
      twins.planned().parameters(), {.older = twins.planned().older_tensors()});
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  static_cast<void>(twins.expect_same_step(**plan, 0));
  const Bytes planned = region_bytes();
  device.is_full = true;
  plan->reset();
  if (device.torch_device().is_cpu()) {
    EXPECT_GT(region_bytes(), before) << "the parameters lie there";
    EXPECT_LT(region_bytes(), planned);
  }
  testing::expect_same_bits(device, twins.planned().parameters(), twins.twin().parameters());
  // And they train on.
  EXPECT_EQ(twins.run_twin(1).loss, twins.planned().run(1));
  testing::expect_same_bits(device, twins.planned().parameters(), twins.twin().parameters());
}

// What streams comes back into the room that the plan's activations had: a full card has no other.
TEST_F(StepMemoryTest, GivesBackWhatNothingLiesInAheadOfWhatComesBack) {
  testing::TwinSessions twins("mlp:layers=4,width=256", most_of_it_idle(), "sgd");
  WatchedDevice device(twins.device(), [] { return region_bytes(); });
  simulator::Schedule schedule = twins.stream(simulator::ParameterPlan::Stream::always, 1);
  schedule.placement = PlacementMode::planned;
  auto plan = executor::PlannedStep::create(device, std::make_shared<const Trace>(twins.trace()),
                                            std::move(schedule), twins.planned().parameters(),
                                            {.older = twins.planned().older_tensors()});
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  static_cast<void>(twins.expect_same_step(**plan, 0));
  const Bytes planned = (*plan)->memory()->bytes();
  const Bytes before = region_bytes();
  device.watches = true;
  plan->reset();
  device.watches = false;
  ASSERT_FALSE(device.seen.empty());
  EXPECT_LE(device.seen.front(), before - planned / 2);
  testing::expect_same_bits(device, twins.planned().parameters(), twins.twin().parameters());
}

// They come back when there is room, and nothing of the plan is left behind that.
TEST_F(StepMemoryTest, WhatWasLeftBehindLeavesItsMemoryToo) {
  testing::TwinSessions twins("mlp:layers=4,width=64", 32, "sgd");
  FullDevice device(twins.device());
  const std::int64_t before = regions();
  simulator::Schedule schedule = twins.stream(simulator::ParameterPlan::Stream::always, 1);
  schedule.placement = PlacementMode::planned;
  auto plan = executor::PlannedStep::create(device, std::make_shared<const Trace>(twins.trace()),
                                            std::move(schedule), twins.planned().parameters(),
                                            {.older = twins.planned().older_tensors()});
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  static_cast<void>(twins.expect_same_step(**plan, 0));
  device.is_full = true;
  plan->reset();
  EXPECT_THROW(executor::PlannedStep::materialise_left_behind(), c10::OutOfMemoryError);
  device.is_full = false;
  executor::PlannedStep::materialise_left_behind();
  if (device.torch_device().is_cpu()) {
    EXPECT_EQ(regions(), before);
  }
  testing::expect_same_bits(device, twins.planned().parameters(), twins.twin().parameters());
  EXPECT_EQ(twins.run_twin(1).loss, twins.planned().run(1));
}

TEST_F(StepMemoryTest, ServesEveryAllocationOfEveryStep) {
  Net net;
  const auto plan = net.plan();
  net.expect_same(*plan, 0);
  const std::int64_t served = plan->memory()->report().served;
  EXPECT_GT(served, 10);
  for (std::int64_t k = 1; k < 4; ++k) net.expect_same(*plan, k);
  const HandOutReport report = plan->memory()->report();
  EXPECT_EQ(report.served, 4 * served);
  EXPECT_EQ(report.conflicts, 0);
  EXPECT_EQ(report.unforeseen, 0);
  EXPECT_GT(plan->memory()->bytes(), 0);
}

TEST_F(StepMemoryTest, WhatUserCodeKeepsIsNotOverwritten) {
  for (const char* name :
       {"loss", "activation", "temporary", "backward's own", "gradient", "loaded"}) {
    SCOPED_TRACE(name);
    Net net;
    const auto plan = net.plan();
    net.expect_same(*plan, 0);
    const HandOutReport before = plan->memory()->report();
    EXPECT_EQ(before.conflicts, 0);
    net.kept_name = name;
    net.expect_same(*plan, 1);
    ASSERT_EQ(net.kept.size(), 1U);
    for (std::int64_t k = 2; k < 5; ++k) {
      net.expect_same(*plan, k);
      EXPECT_TRUE(at::equal(net.kept[0], net.copies[0])) << "step " << k;
    }
    const HandOutReport report = plan->memory()->report();
    EXPECT_GT(report.conflicts, 0);
    ASSERT_FALSE(report.first_conflicts.empty());
    // Once it is gone all is as planned.
    net.forget();
    net.expect_same(*plan, 5);
    EXPECT_EQ(plan->memory()->report().conflicts, report.conflicts);
  }
}

// What is there all the time, and user code replaces while somebody still has the old one.
TEST_F(StepMemoryTest, WhatIsReplacedBetweenStepsIsNotOverwritten) {
  for (const char* kind : {"parameter", "buffer", "optimizer_state", "input"}) {
    SCOPED_TRACE(kind);
    testing::TwinSessions twins("resnet50:blocks=1-1-1-1,width=8,image=32,classes=40", 2, "adamw");
    auto plan = testing::or_throw(executor::PlannedStep::create(
        twins.device(), twins.shared_trace(),
        simulator::resident_schedule(twins.index(), PlacementMode::planned),
        twins.planned().parameters(), {.older = twins.planned().older_tensors()}));
    static_cast<void>(twins.expect_same_step(*plan, 0));
    const at::Tensor replaced = [&] {
      if (kind == std::string_view("parameter")) return twins.planned().parameters()[0].tensor;
      if (kind == std::string_view("buffer")) return twins.planned().buffers()[0].tensor;
      if (kind == std::string_view("input")) return twins.planned().model().inputs()[0].tensor;
      return twins.planned().optimizer_state()[0].tensor;
    }();
    ASSERT_TRUE(plan->memory()->has(replaced.const_data_ptr()));
    const at::Tensor kept = replaced.detach();
    const at::Tensor copy = kept.clone();
    at::Tensor(replaced).set_data(replaced.detach().clone());
    for (std::int64_t k = 1; k < 4; ++k) {
      static_cast<void>(twins.expect_same_step(*plan, k));
      EXPECT_TRUE(at::equal(kept, copy)) << "step " << k;
    }
  }
}

// An evaluation has the room that the plan's own tensors have in a step, and whoever streams too.
TEST_F(StepMemoryTest, LendsBetweenStepsWhatNothingLiesIn) {
  testing::TwinSessions twins("mlp:layers=4,width=256", most_of_it_idle(), "adamw");
  simulator::Schedule schedule = twins.stream(simulator::ParameterPlan::Stream::always, 1);
  schedule.placement = PlacementMode::planned;
  auto plan = testing::or_throw(executor::PlannedStep::create(
      twins.device(), twins.shared_trace(), std::move(schedule), twins.planned().parameters(),
      {.older = twins.planned().older_tensors()}));
  executor::StepMemory& memory = *plan->memory();
  const Bytes whole = memory.bytes();
  for (std::int64_t k = 0; k < 3; ++k) {
    static_cast<void>(twins.expect_same_step(*plan, k));
    EXPECT_EQ(memory.lent(), k);
    EXPECT_EQ(memory.bytes(), whole);
    const executor::NamedTensor state = twins.planned().optimizer_state()[0];
    ASSERT_TRUE(memory.has(state.tensor.const_data_ptr()));
    ask_for_memory(whole / 2);
    EXPECT_EQ(memory.lent(), k + 1);
    EXPECT_LT(memory.bytes(), whole / 2);
    testing::expect_same_bits(twins.device(), twins.planned().optimizer_state(),
                              twins.twin().optimizer_state());
    plan->materialise_all();
    testing::expect_same_bits(twins.device(), twins.planned().parameters(),
                              twins.twin().parameters());
  }
  const HandOutReport report = memory.report();
  EXPECT_EQ(report.conflicts, 0);
  EXPECT_EQ(report.unforeseen, 0);
  EXPECT_EQ(plan->memory_report()->lent, 3);
  EXPECT_LT(memory.bytes(), whole);
  plan.reset();  // while its pages are lent
  testing::expect_same_bits(twins.device(), twins.planned().parameters(),
                            twins.twin().parameters());
  EXPECT_EQ(twins.run_twin(3).loss, twins.planned().run(3));
}

// Whoever finds no memory, on whatever thread, while steps begin, run, leave their plan and end.
TEST_F(StepMemoryTest, MayBeLentByAnotherThreadAtAnyTime) {
  if (!testing::hand_device().torch_device().is_cpu()) GTEST_SKIP() << "of the CPU's allocator";
  executor::TrackedAllocator& allocator = *testing::or_throw(executor::TrackedAllocator::install());
  Net net;
  const auto plan = net.plan(OffPlan::offload_all);
  std::atomic<std::int64_t> lent = 0;
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (allocator.lend()) ++lent;
      std::this_thread::yield();
    }
  });
  std::int64_t k = 0;
  while (k < 12 || (lent < 5 && k < 1000)) {
    net.differs = k % 4 == 3;
    EXPECT_EQ(net.expect_same(*plan, k++).report.on_plan, !net.differs);
  }
  other.request_stop();
  other.join();
  EXPECT_GE(lent, 5);
  EXPECT_EQ(plan->memory()->lent(), lent);
}

TEST_F(StepMemoryTest, WhatIsNotForeseenIsTheAllocatorsOwn) {
  Net net;
  const auto plan = net.plan();
  net.expect_same(*plan, 0);
  const std::int64_t served = plan->memory()->report().served;
  net.allocates = true;
  for (std::int64_t k = 1; k < 4; ++k) net.expect_same(*plan, k);
  const HandOutReport report = plan->memory()->report();
  EXPECT_EQ(report.served, 4 * served);
  EXPECT_EQ(report.unforeseen, 3);
  ASSERT_EQ(report.first_unforeseen.size(), 1U);
  EXPECT_EQ(report.first_unforeseen[0].times, 3);
  EXPECT_EQ(report.first_unforeseen[0].bytes, 199 * 4);
  EXPECT_TRUE(report.first_unforeseen[0].ahead_of.valid());
  EXPECT_EQ(report.first_unforeseen[0].op, "aten::exp") << "not the one behind it";
}

TEST_F(StepMemoryTest, AStepOffThePlanAndTheOneBehindItAreRight) {
  Net net;
  const auto plan = net.plan(OffPlan::offload_all);
  net.expect_same(*plan, 0);
  const std::int64_t served = plan->memory()->report().served;
  net.differs = true;
  const Outcome off = net.expect_same(*plan, 1);
  EXPECT_FALSE(off.report.on_plan);
  const std::int64_t until_it_left = plan->memory()->report().served - served;
  // What the step allocates besides has the size of what comes next in the plan, and is served as
  // that until it is seen to be another step: then a range may come ahead of its time.
  const std::int64_t conflicts = plan->memory()->report().conflicts;
  EXPECT_GT(until_it_left, 0);
  EXPECT_LT(until_it_left, served);
  net.differs = false;
  EXPECT_TRUE(net.expect_same(*plan, 2).report.on_plan);
  EXPECT_EQ(plan->memory()->report().served, 2 * served + until_it_left);
  EXPECT_EQ(plan->memory()->report().conflicts, conflicts);
}

TEST_F(StepMemoryTest, AStepThatThrowsAndTheOneBehindItAreRight) {
  Net net;
  const auto plan = net.plan();
  net.expect_same(*plan, 0);
  net.show = [](const at::Tensor&) { throw std::runtime_error("the user's own"); };
  EXPECT_THROW(static_cast<void>(net.step->planned(*plan, 1)), std::exception);
  net.show = [](const at::Tensor&) {};
  net.expect_same(*plan, 2);
  EXPECT_EQ(plan->memory()->report().conflicts, 0);
}

TEST_F(StepMemoryTest, NothingIsHandedOutBetweenSteps) {
  Net net;
  const auto plan = net.plan();
  net.expect_same(*plan, 0);
  const HandOutReport before = plan->memory()->report();
  const at::Tensor evaluated = at::linear(net.x, net.p).tanh().sum();
  EXPECT_TRUE(at::equal(evaluated, at::linear(net.x, net.p).tanh().sum()));
  EXPECT_EQ(plan->memory()->report().served, before.served);
  EXPECT_EQ(plan->memory()->report().unforeseen, before.unforeseen);
  net.expect_same(*plan, 1);
  EXPECT_EQ(plan->memory()->report().served, 2 * before.served);
}

TEST_F(StepMemoryTest, IsGivenBackOnceThePlanIsLeftAndNothingLiesInIt) {
  {
    Net first;  // a GPU loads kernels when they are first used
    first.expect_same(*first.plan(), 0);
  }
  const std::int64_t before = regions();
  Net net;
  auto plan = net.plan();
  EXPECT_GT(regions(), before);
  net.kept_name = "activation";
  net.expect_same(*plan, 0);
  plan.reset();
  EXPECT_GT(regions(), before) << "somebody keeps a tensor in it";
  EXPECT_TRUE(at::equal(net.kept[0], net.copies[0]));
  net.forget();
  EXPECT_EQ(regions(), before) << "gradients have left with their parameters";
  auto another = net.plan();
  net.expect_same(*another, 1);
  EXPECT_EQ(another->memory()->report().conflicts, 0);
}

TEST_F(StepMemoryTest, WhatIsOlderMovesInAndBackUnchanged) {
  Net net;
  const std::vector<at::Tensor> older = {net.p, net.q, net.x};
  std::vector<at::Tensor> copies;
  std::vector<std::int64_t> versions;
  for (const at::Tensor& each : older) {
    copies.push_back(each.detach().clone());
    versions.push_back(each._version());
  }
  const at::Tensor view = net.p.detach().slice(0, 4, 8);
  auto plan = net.plan();
  const auto expect_unchanged = [&](bool lies_in_it) {
    for (std::size_t i = 0; i < older.size(); ++i) {
      EXPECT_EQ(plan->memory()->has(older[i].const_data_ptr()), lies_in_it) << i;
      EXPECT_TRUE(at::equal(older[i].detach(), copies[i])) << i;
      EXPECT_EQ(older[i]._version(), versions[i]) << i;
    }
    EXPECT_EQ(view.storage().data(), net.p.storage().data());
    EXPECT_TRUE(at::equal(view, copies[0].slice(0, 4, 8)));
  };
  expect_unchanged(true);
  EXPECT_EQ(plan->memory_report()->older, net.p.nbytes() + net.q.nbytes() + net.x.nbytes());
  net.expect_same(*plan, 0);
  copies[2] = net.x.detach().clone();  // drawn anew for the step
  versions[2] = net.x._version();
  const void* const was = net.p.const_data_ptr();
  plan.reset();
  EXPECT_NE(net.p.const_data_ptr(), was);
  for (std::size_t i = 0; i < older.size(); ++i) {
    EXPECT_TRUE(at::equal(older[i].detach(), copies[i])) << i;
    EXPECT_EQ(older[i]._version(), versions[i]) << i;
  }
  EXPECT_TRUE(at::equal(view, copies[0].slice(0, 4, 8)));
}

TEST_F(StepMemoryTest, WhatTheFirstStepMakesForGoodHasItsPlace) {
  constexpr const char* kModel = "mlp:layers=2,width=24";
  for (const char* optimizer : {"adamw", "sgd"}) {
    SCOPED_TRACE(optimizer);
    const testing::RecordedModel recorded = testing::record_model(kModel, 8, optimizer);
    const auto session = testing::make_fresh_session(kModel, 8, optimizer);
    const auto twin = testing::make_fresh_session(kModel, 8, optimizer);
    executor::TrainingStep& step = session->step();
    executor::PlannedStepOptions options;
    options.older = step.older_tensors();
    const auto plan = testing::or_throw(executor::PlannedStep::create(
        session->device(), recorded.trace,
        simulator::resident_schedule(simulator::StepIndex(*recorded.trace), PlacementMode::planned),
        step.parameters(), options));
    for (std::int64_t k = 0; k < 4; ++k) {
      step.prepare(k);
      plan->begin_step();
      const double loss = step.step();
      const auto ended = plan->end_step();
      ASSERT_TRUE(ended.ok()) << ended.error().text();
      EXPECT_EQ(loss, twin->step().run(k));
      testing::expect_same_bits(session->device(), step.parameters(), twin->step().parameters());
    }
    const HandOutReport report = plan->memory()->report();
    EXPECT_EQ(report.conflicts, 0);
    EXPECT_EQ(report.unforeseen, 0);
    for (const executor::NamedTensor& each : step.optimizer_state()) {
      if (each.tensor.device() != session->device().torch_device()) continue;
      EXPECT_TRUE(plan->memory()->has(each.tensor.const_data_ptr())) << each.name;
    }
  }
}

TEST_F(StepMemoryTest, TwoModelsInTurnHaveEachTheirOwn) {
  Net one;
  Net two;
  const auto plan_of_one = one.plan();
  const auto plan_of_two = two.plan();
  one.expect_same(*plan_of_one, 0);
  const std::int64_t served = plan_of_one->memory()->report().served;
  two.expect_same(*plan_of_two, 0);
  for (std::int64_t k = 1; k < 3; ++k) {
    one.expect_same(*plan_of_one, k);
    two.expect_same(*plan_of_two, k);
  }
  // One within the other: a step of two in the middle of one's.
  one.between = [&] { static_cast<void>(two.step->planned(*plan_of_two, 3)); };
  static_cast<void>(one.step->planned(*plan_of_one, 3));
  for (const auto* const plan : {&plan_of_one, &plan_of_two}) {
    const HandOutReport report = (*plan)->memory()->report();
    EXPECT_EQ(report.served, 4 * served);
    EXPECT_EQ(report.conflicts, 0);
    EXPECT_EQ(report.unforeseen, 0);
  }
}

}  // namespace
}  // namespace stowage
