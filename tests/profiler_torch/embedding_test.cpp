// The embedding API in a user's own loop: record, plan, apply, run; exceptions, callbacks, and
// several models of one process one after another.
#include <ATen/ops/mm.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "executor/layer.h"
#include "executor/planned_training.h"
#include "planner/planner.h"
#include "profiler/torch/record.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage {
namespace {

using executor::PlannedTraining;

executor::Device& test_device() {
  return testing::hand_device();
}

at::TensorOptions options() {
  return at::TensorOptions().device(test_device().torch_device());
}

// A user's loop, without any class of Stowage's.
struct Loop {
  std::int64_t width;
  std::int64_t layers;
  at::Tensor x = at::empty({128, width}, options());
  std::vector<at::Tensor> weights;
  int throw_at_layer = -1;
  bool throw_in_backward = false;
  bool one_layer_more = false;
  float loss = 0;

  Loop(std::int64_t w, std::int64_t n) : width(w), layers(n) {
    at::manual_seed(static_cast<std::uint64_t>(w));
    for (std::int64_t i = 0; i < layers; ++i) {
      weights.push_back(
          (at::rand({width, width}, options()) / static_cast<double>(width)).requires_grad_());
    }
  }

  void load(std::int64_t k) const {
    at::manual_seed(static_cast<std::uint64_t>(k));
    x.normal_();
  }

  void step() {
    for (at::Tensor& each : weights) each.mutable_grad().reset();
    at::Tensor y = x;
    const std::int64_t count = layers + (one_layer_more ? 1 : 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const at::Tensor& w = weights[static_cast<std::size_t>(i % layers)];
      y = stowage::layer("layers." + std::to_string(i),
                         [&](const std::vector<at::Tensor>& in) {
                           if (i == throw_at_layer)
                             throw std::runtime_error("the user's own trouble");
                           return at::tanh(at::mm(in[0], w));
                         },
                         {std::exchange(y, {})});
    }
    at::Tensor mean = y.mean();
    y.reset();
    if (throw_in_backward) {
      mean.register_hook([](const at::Tensor&) { throw std::runtime_error("in backward"); });
    }
    mean.backward();
    loss = mean.item<float>();
  }

  [[nodiscard]] std::vector<executor::NamedTensor> parameters() const {
    std::vector<executor::NamedTensor> named;
    for (const at::Tensor& each : weights) {
      named.push_back({"w" + std::to_string(named.size()), each});
    }
    return named;
  }

  [[nodiscard]] profiler::StepFunctions functions() {
    return {[this](std::int64_t k) { load(k); }, [this] { step(); },
            [this] {
              return profiler::RegisteredTensors{parameters(), {}, {{"x", x}}, {}};
            }};
  }
};

std::shared_ptr<const Trace> record(Loop& loop, const profiler::PassOptions& passes = {}) {
  auto trace = profiler::record(test_device(), loop.functions(), {}, {.passes = passes});
  EXPECT_TRUE(trace.ok()) << trace.error().text();
  return std::make_shared<const Trace>(std::move(trace).value());
}

std::unique_ptr<PlannedTraining> plan(const std::shared_ptr<const Trace>& trace, Loop& loop,
                                      executor::PlannedTrainingOptions given = {}) {
  const simulator::StepIndex index(*trace);
  // Half way between what the step needs and what it would take: on a GPU most of this small one
  // is the workspace of its products.
  planner::PlanRequest request;
  request.budget_on = simulator::PeakKind::requested;
  request.allowed.gradients = false;  // the loop looks at them between steps
  request.budget = 1;
  const auto least = planner::make_plan(index, request);
  EXPECT_TRUE(least.ok()) << least.error().text();
  request.budget = (least->floor.bytes + trace->peaks.requested.front()) / 2;
  auto outcome = planner::make_plan(index, request);
  EXPECT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->kind, planner::PlanKind::planned);
  auto training = PlannedTraining::create(test_device(), trace, outcome->plan, loop.parameters(),
                                          std::move(given));
  EXPECT_TRUE(training.ok()) << training.error().text();
  return std::move(training).value();
}

// On the host: what lives on the device counts in the step's peak.
struct Results {
  float loss = 0;
  std::vector<std::vector<char>> gradients;

  bool operator==(const Results&) const = default;
};

Results results_of(const Loop& loop) {
  Results results{loop.loss, {}};
  for (const at::Tensor& each : loop.weights) {
    results.gradients.push_back(testing::fetch(test_device(), each.grad()));
  }
  return results;
}

Results plain(Loop& loop, std::int64_t k) {
  loop.load(k);
  loop.step();
  return results_of(loop);
}

// Under the plan, with its peak.
Results planned(PlannedTraining& training, Loop& loop, std::int64_t k) {
  loop.load(k);
  test_device().reset_peak();
  const auto report = training.run([&] { loop.step(); });
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report->on_plan);
  EXPECT_EQ(report->memory.peak_requested, training.predicted().peak_requested);
  return results_of(loop);
}

void expect_equal(const Results& a, const Results& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_TRUE(a == b);
}

// A loop that was recorded, ran batch k plain, and is planned.
struct Planned {
  explicit Planned(std::int64_t k) : before(plain(loop, k)), training(plan(trace, loop)) {}

  Loop loop{64, 6};
  std::shared_ptr<const Trace> trace = record(loop);
  Results before;
  std::unique_ptr<PlannedTraining> training;
};

TEST(Embedding, ALoopIsRecordedPlannedAndRunsAsBefore) {
  test_device();
  Planned job(11);
  EXPECT_LT(job.training->predicted().peak_requested, job.trace->peaks.requested.front());
  planned(*job.training, job.loop, 10);
  expect_equal(planned(*job.training, job.loop, 11), job.before);
}

TEST(Embedding, AnExceptionPassesThroughAndTheNextStepIsClean) {
  test_device();
  Planned job(3);
  Loop& loop = job.loop;
  for (int where = -1; where < 6; ++where) {
    SCOPED_TRACE(where);
    loop.throw_at_layer = where;
    loop.throw_in_backward = where < 0;
    loop.load(3);
    EXPECT_THROW(static_cast<void>(job.training->run([&] { loop.step(); })), std::runtime_error);
    EXPECT_EQ(executor::driver(), nullptr);
    loop.throw_at_layer = -1;
    loop.throw_in_backward = false;
    expect_equal(planned(*job.training, loop, 3), job.before);
  }
}

TEST(Embedding, AnotherStepIsRefusedOrLogged) {
  test_device();
  Loop loop(64, 6);
  const auto trace = record(loop);
  {
    const auto training = plan(trace, loop);
    loop.one_layer_more = true;
    EXPECT_THROW(static_cast<void>(training->run([&] { loop.step(); })), c10::Error);
    EXPECT_EQ(executor::driver(), nullptr);
  }
  const Results other = plain(loop, 5);
  std::vector<std::string> lines;
  executor::PlannedTrainingOptions logged;
  logged.step.off_plan = executor::OffPlan::offload_all;
  logged.log = [&](const std::string& line) { lines.push_back(line); };
  const auto training = plan(trace, loop, std::move(logged));
  loop.load(5);
  const auto report = training->run([&] { loop.step(); });
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_FALSE(report->on_plan);
  expect_equal(results_of(loop), other);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("left the plan"), std::string::npos);
  EXPECT_NE(lines[0].find("layers.6"), std::string::npos) << lines[0];
}

TEST(Embedding, SeveralModelsOneAfterAnother) {
  test_device();
  Loop first(64, 6);
  const auto first_trace = record(first);
  const Results first_plain = plain(first, 2);
  const auto first_training = plan(first_trace, first);
  planned(*first_training, first, 2);
  {
    Loop second(96, 4);
    const auto second_trace = record(second);
    const Results second_plain = plain(second, 2);
    const auto second_training = plan(second_trace, second);
    for (int k = 0; k < 3; ++k) {
      second.load(2);
      ASSERT_TRUE(second_training->run([&] { second.step(); }).ok());
      expect_equal(results_of(second), second_plain);
      first.load(2);
      ASSERT_TRUE(first_training->run([&] { first.step(); }).ok());
      expect_equal(results_of(first), first_plain);
    }
  }
  expect_equal(planned(*first_training, first, 2), first_plain);
}

TEST(Embedding, RecordingTellsItsParts) {
  test_device();
  Loop loop(16, 2);
  std::vector<std::string> parts;
  profiler::PassOptions passes;
  passes.progress = [&](std::string_view part) { parts.emplace_back(part); };
  const auto trace = record(loop, passes);
  EXPECT_FALSE(trace->run.uuid.empty());
  EXPECT_FALSE(trace->run.created.empty());
  EXPECT_EQ(parts, (std::vector<std::string>{"warm-up", "clean steps",
                                             "calibration of the copy lanes", "warm-up",
                                             "observed steps", "a step with everything offloaded",
                                             "launching behind waits", "what hooks cost"}));
  passes.progress = [](std::string_view part) {
    if (part == "observed steps") throw std::runtime_error("enough");
  };
  EXPECT_THROW(
      static_cast<void>(profiler::record(test_device(), loop.functions(), {}, {.passes = passes})),
      std::runtime_error);
  EXPECT_EQ(executor::driver(), nullptr);
  EXPECT_GT(record(loop)->peaks.requested.front(), 0);
}

// As `stowage profile` does: everything leaves in each recorded step, and the trace says what the
// step would take with everything kept.
TEST(Embedding, AStepThatDoesNotFitIsRecordedOffloaded) {
  executor::Device& device = test_device();
  if (testing::on_gpu()) GTEST_SKIP() << "a GPU's limit is in whole segments";
  Loop loop(32, 6);
  const auto whole = record(loop);
  const Bytes kept = whole->peaks.requested.front();
  const Bytes away = whole->overhead.offload_all.peak_requested;
  ASSERT_LT(away, kept);
  const Bytes limit = (kept + away) / 2;
  device.set_memory_limit(limit);
  std::vector<std::string> warnings;
  profiler::RecordSettings settings;
  settings.passes.progress = [&](std::string_view part) {
    // The calibration's buffers are its own.
    device.set_memory_limit(part.find("calibration") == 0 ? 0 : limit);
  };
  settings.warn = [&](const std::string& line) { warnings.push_back(line); };
  const auto trace = profiler::record(device, loop.functions(), {}, settings);
  device.set_memory_limit(0);
  ASSERT_TRUE(trace.ok()) << trace.error().text();
  EXPECT_EQ(trace->peaks.requested.front(), kept);
  EXPECT_EQ(trace->overhead.clean.step_ns, 0);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("out of memory"), std::string::npos) << warnings[0];
}

}  // namespace
}  // namespace stowage
