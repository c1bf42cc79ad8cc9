#include "tests/profiler_torch/hand_step.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <exception>
#include <stdexcept>
#include <utility>

#include "executor/run_options.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/passes.h"
#include "simulator/replay/replay.h"
#include "simulator/step/unroll.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/or_throw.h"
#include "tests/support/schedule_parts.h"
#include "traces/validate.h"

namespace stowage::testing {

namespace {

using simulator::CopyMode;
using simulator::Decisions;
using simulator::Lowering;
using simulator::ReleasePoint;
using simulator::ReloadPoint;
using simulator::SavedDecision;

std::atomic<std::uint64_t> g_delays{1};

// A busy pause of up to ~60 us, another one for each copy.
void pause(std::uint64_t number) {
  const std::uint64_t spins = (number * 2654435761U + g_delays.load() * 40503U) % 20000;
  for (std::uint64_t i = 0; i < spins; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

void seed(std::int64_t k) {
  at::Generator generator = at::globalContext().defaultGenerator(hand_device().torch_device());
  generator.set_current_seed(static_cast<std::uint64_t>(k) + 1);
}

void draw(const at::Tensor& tensor) {
  if (at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false)) {
    tensor.random_(0, 10);
  } else if (tensor.is_floating_point()) {
    tensor.uniform_(-1, 1);
  } else {
    tensor.normal_();
  }
}

std::vector<executor::NamedTensor> named(const std::vector<at::Tensor>& tensors,
                                         const std::string& name) {
  std::vector<executor::NamedTensor> result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    result.push_back({name + std::to_string(i), tensors[i]});
  }
  return result;
}

// A link that is slow beside this compute, so that automatic points have work to do.
Calibration slow_link() {
  Calibration calibration;
  for (LinkCurve* curve : {&calibration.d2h, &calibration.h2d}) {
    curve->bytes = {4096, 1 << 20};
    curve->bytes_per_second = {500'000'000, 2'000'000'000};
    curve->bytes_per_second_p10 = curve->bytes_per_second;
    curve->latency = 5000;
  }
  return calibration;
}

SavedDecision offload(ReleasePoint::Kind release, ReloadPoint::Kind reload,
                      CopyMode mode = CopyMode::lane, bool share = true) {
  SavedDecision decision;
  decision.decision = simulator::Decision::offload;
  decision.release.kind = release;
  decision.reload.kind = reload;
  decision.copy_out = decision.copy_in = mode;
  decision.share = share;
  return decision;
}

}  // namespace

executor::Device& hand_device() {
  static executor::Device* const device = [] {
    auto made = make_delayed_device(&pause);
    or_throw(executor::apply_run_options({.threads = 1}));
    return made.release();  // tensors in static objects die after main
  }();
  return *device;
}

void change_delays() {
  g_delays.fetch_add(1);
}

at::Tensor input(std::vector<std::int64_t> shape, at::ScalarType dtype) {
  static std::int64_t draws = 1000;
  at::Tensor tensor =
      at::empty(shape, at::TensorOptions(hand_device().torch_device()).dtype(dtype));
  seed(draws++);
  draw(tensor);
  return tensor;
}

at::Tensor parameter(std::vector<std::int64_t> shape, at::ScalarType dtype) {
  return input(std::move(shape), dtype).requires_grad_();
}

double backward(const at::Tensor& loss) {
  loss.backward();
  return loss.item().toDouble();
}

HandStep::HandStep(std::vector<at::Tensor> parameters, std::vector<at::Tensor> inputs,
                   std::function<double()> body)
    : parameters_(std::move(parameters)), inputs_(std::move(inputs)), body_(std::move(body)) {
  const profiler::PassOptions kPasses{.warmup = 2, .steps = 2, .structure = 1};
  profiler::StepFunctions functions;
  functions.prepare = [this](std::int64_t k) { prepare(k); };
  functions.step = [this] {
    for (const at::Tensor& each : parameters_) each.mutable_grad().reset();
    body_();
  };
  functions.registered = [this] {
    profiler::RegisteredTensors registered;
    registered.parameters = named(parameters_, "p");
    registered.inputs = named(inputs_, "x");
    return registered;
  };
  profiler::RawRecording raw;
  raw.clean = or_throw(profiler::run_clean_pass(hand_device(), functions, kPasses));
  auto observed = or_throw(profiler::run_observed_passes(hand_device(), functions, kPasses));
  raw.structure = std::move(observed.structure);
  raw.offload_all = std::move(observed.offload_all);
  raw.run.source = "recorded";
  raw.run.model = "hand-made";
  raw.run.steps = 1;
  raw.run.threads = 1;
  raw.env.device = test_device_name();
  raw.calibration = slow_link();
  Trace trace = or_throw(profiler::assemble(raw));
  or_throw(validate(trace, "hand-made"));
  trace_ = std::make_shared<const Trace>(std::move(trace));
  index_ = std::make_unique<simulator::StepIndex>(*trace_);
}

void HandStep::prepare(std::int64_t k) {
  seed(k);
  for (const at::Tensor& each : inputs_) {
    if (each.is_floating_point()) draw(each);
  }
}

void HandStep::collect(Outcome& outcome, executor::PlannedStep* plan) const {
  outcome.peak = hand_device().memory().peak_requested;
  outcome.end = hand_device().memory().requested;
  for (const at::Tensor& each : parameters_) {
    auto& bits = outcome.gradients.emplace_back();
    if (!each.grad().defined()) continue;
    if (each.grad()._is_zerotensor()) {  // has no memory
      bits.resize(each.grad().nbytes());
      continue;
    }
    const at::Tensor own =
        plan == nullptr ? each.grad() : plan->values({{"gradient", each.grad()}}).front().tensor;
    const at::Tensor gradient = own.detach().contiguous();
    bits = fetch(hand_device(), gradient);
  }
}

Outcome HandStep::plain(std::int64_t k) {
  prepare(k);
  Outcome outcome;
  outcome.begin = hand_device().memory().requested;
  hand_device().reset_peak();
  for (const at::Tensor& each : parameters_) each.mutable_grad().reset();
  outcome.loss = body_();
  collect(outcome, nullptr);
  return outcome;
}

Outcome HandStep::planned(executor::PlannedStep& plan, std::int64_t k) {
  prepare(k);
  Outcome outcome;
  outcome.begin = hand_device().memory().requested;
  hand_device().reset_peak();
  plan.begin_step();
  try {
    for (const at::Tensor& each : parameters_) each.mutable_grad().reset();
    outcome.loss = body_();
  } catch (...) {
    plan.abort_step();
    throw;
  }
  auto report = plan.end_step();
  if (report) {
    outcome.report = std::move(report).value();
  } else {
    outcome.end_error = report.error().text();
  }
  collect(outcome, &plan);
  if (outcome.end_error.empty()) outcome.peak = outcome.report.memory.peak_requested;
  return outcome;
}

Lowering HandStep::lower(const Decisions& decisions) const {
  return or_throw(simulator::lower(*index_, decisions));
}

Lowering HandStep::lower(const std::vector<simulator::SavedRule>& rules) const {
  simulator::Plan plan;
  plan.saved = rules;
  return or_throw(simulator::lower(*index_, plan));
}

std::unique_ptr<executor::PlannedStep> HandStep::plan(const simulator::Schedule& schedule,
                                                      executor::OffPlan off_plan,
                                                      bool poison_host) const {
  executor::PlannedStepOptions options;
  options.older = inputs_;
  options.off_plan = off_plan;
  options.poison_host = poison_host;
  options.poison_device = true;
  return or_throw(executor::PlannedStep::create(hand_device(), trace_, in_test_memory(schedule),
                                                named(parameters_, "p"), options));
}

std::unique_ptr<executor::PlannedStep> HandStep::plan_in(
    const simulator::Structure& structure) const {
  executor::PlannedStepOptions options;
  options.poison_device = true;
  options.structure = structure;
  const simulator::Step step = or_throw(simulator::unroll(*trace_, options.structure));
  const simulator::Schedule schedule = simulator::resident_schedule(simulator::StepIndex(step));
  return or_throw(executor::PlannedStep::create(hand_device(), trace_, in_test_memory(schedule),
                                                named(parameters_, "p"), options));
}

const std::vector<Style>& styles() {
  using Release = ReleasePoint::Kind;
  using Reload = ReloadPoint::Kind;
  static const std::vector<Style> all = [] {
    std::vector<Style> list = {
        {"automatic", offload(Release::automatic, Reload::automatic)},
        {"at once, on demand", offload(Release::pack, Reload::unpack)},
        {"late, on demand", offload(Release::pack, Reload::unpack)},
        {"one copy a view", offload(Release::automatic, Reload::unpack, CopyMode::lane, false)},
        {"one copy a view, at once",
         offload(Release::pack, Reload::automatic, CopyMode::lane, false)},
        {"on compute", offload(Release::pack, Reload::unpack, CopyMode::compute)},
        {"blocking", offload(Release::pack, Reload::automatic, CopyMode::blocking)},
    };
    list[2].decision.release.lag = 1000;
    return list;
  }();
  return all;
}

Decisions offload_made(const Trace& trace, const SavedDecision& decision) {
  Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId storage = trace.saved.storage[s];
    if (!storage.valid() || !trace.storages.alloc_event[storage.index()].valid()) continue;
    decisions.saved[s] = decision;
  }
  return decisions;
}

void expect_same(const Outcome& outcome, const Outcome& reference) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(outcome.loss),
            std::bit_cast<std::uint64_t>(reference.loss))
      << outcome.loss << " and " << reference.loss;
  ASSERT_EQ(outcome.gradients.size(), reference.gradients.size());
  for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
    EXPECT_TRUE(outcome.gradients[i] == reference.gradients[i]) << "gradient " << i;
  }
}

namespace {

constexpr int kStepsOfAPlacement = 3;

void expect_exact(HandStep& step, Lowering lowering, simulator::PlacementMode placement) {
  lowering.schedule.placement = placement;
  const auto predicted = simulator::replay(step.index(), lowering.schedule);
  const auto resident = simulator::replay(step.index(), simulator::resident_schedule(step.index()));
  Bytes offloaded = 0;
  for (const auto& each : testing::offloads_of(lowering.schedule)) offloaded += each.bytes;
  Bytes reloaded = 0;
  for (const auto& each : testing::reloads_of(lowering.schedule)) {
    reloaded += lowering.schedule.tenants[each.tenant.index()].bytes;
  }
  const auto plan = step.plan(lowering.schedule);
  EXPECT_EQ(plan->host_high_water(), 0) << "ahead of all copies";
  for (std::int64_t k = 0; k < kStepsOfAPlacement; ++k) {
    SCOPED_TRACE("step " + std::to_string(k));
    change_delays();
    const Outcome reference = step.plain(k);
    const Outcome outcome = step.planned(*plan, k);
    expect_same(outcome, reference);
    EXPECT_EQ(outcome.end_error, "");
    EXPECT_EQ(plan->host_high_water(), predicted.host_bytes) << "that copies reached";
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    EXPECT_EQ(outcome.begin, reference.begin);
    EXPECT_EQ(outcome.end, reference.end);
    EXPECT_EQ(reference.peak, resident.peak_requested);
    EXPECT_EQ(outcome.peak, predicted.peak_requested);
    EXPECT_EQ(outcome.report.offloaded_bytes, offloaded);
    EXPECT_EQ(outcome.report.reloaded_bytes, reloaded);
    EXPECT_EQ(outcome.report.off_plan_packs, 0);
  }
}

void expect_exact(HandStep& step, const Lowering& lowering) {
  expect_exact(step, lowering, simulator::PlacementMode::caching);
  if (::testing::Test::HasFailure()) return;
  SCOPED_TRACE("on its placement");
  expect_exact(step, lowering, simulator::PlacementMode::planned);
}

}  // namespace

int exact_steps() {
  return 2 * kStepsOfAPlacement;
}

Lowering expect_exact(HandStep& step, const Decisions& decisions) {
  Lowering lowering = step.lower(decisions);
  expect_exact(step, lowering);
  return lowering;
}

Lowering expect_exact(HandStep& step, const std::vector<simulator::SavedRule>& rules) {
  Lowering lowering = step.lower(rules);
  expect_exact(step, lowering);
  return lowering;
}

void expect_exact_in_every_style(HandStep& step) {
  for (const Style& style : styles()) {
    SCOPED_TRACE(style.name);
    expect_exact(step, offload_made(step.trace(), style.decision));
    if (::testing::Test::HasFailure()) return;
  }
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace stowage::testing
