#include "profiler/torch/calibrate.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "executor/saved_tensor_engine.h"
#include "executor/step_driver.h"
#include "hand_step.h"
#include "profiler/torch/copy_runs.h"
#include "profiler/torch/issue_costs.h"
#include "profiler/torch/link_rounds.h"
#include "profiler/torch/step_hooks.h"
#include "simulator/machine/link_model.h"

namespace stowage::profiler {
namespace {

using testing::hand_device;

TEST(Calibrate, GivesUsableCurvesAndFactors) {
  // The first product makes cuBLAS take its workspace, which stays.
  ASSERT_TRUE(calibrate(hand_device(), {.largest = Bytes{4} << 10, .repetitions = 1}).ok());
  const Bytes before = hand_device().memory().requested;
  const auto calibration = calibrate(hand_device(), {.largest = Bytes{1} << 20, .repetitions = 3});
  ASSERT_TRUE(calibration.ok()) << calibration.error().message;
  for (const LinkCurve* curve : {&calibration->d2h, &calibration->h2d}) {
    EXPECT_TRUE(simulator::is_usable(*curve));
    EXPECT_EQ(curve->bytes, (std::vector<Bytes>{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}));
    EXPECT_EQ(curve->bytes_per_second_p10.size(), curve->bytes.size());
    EXPECT_GT(curve->latency, 0);
  }
  for (const Ppm factor :
       {calibration->duplex, calibration->compute_interference, calibration->copy_interference}) {
    EXPECT_GT(factor, 0);
    EXPECT_LE(factor, kPpm);
  }
  // Only a GPU hands over; there it takes microseconds, with a small copy between.
  const bool on_gpu = hand_device().torch_device().is_cuda();
  const Nanoseconds copy = simulator::transfer_ns(calibration->h2d, 4 << 10);
  for (const Nanoseconds gap : {calibration->handover_ns, calibration->compute_copy_gap_ns}) {
    if (on_gpu) {
      EXPECT_GT(copy + gap, 5000);
    } else {
      EXPECT_EQ(gap, 0);
    }
  }
  EXPECT_GE(calibration->start_gap_ns, 0);
  if (!on_gpu) {
    EXPECT_EQ(calibration->start_gap_ns, 0);
  }
  EXPECT_EQ(calibration->samples, 3);
  EXPECT_EQ(hand_device().memory().requested, before);  // nothing stays
}

TEST(Calibrate, MeasuresTheHostsUpdatesOfARunThatHasSome) {
  const CalibrationOptions few{.largest = Bytes{1} << 20, .repetitions = 1};
  const auto none = calibrate(hand_device(), few);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->host_update_ns_per_gib, 0);
  EXPECT_EQ(none->host_update_ns, 0);
  EXPECT_EQ(none->host_update_interference, kPpm);
  const Bytes before = hand_device().memory().requested;
  using executor::OptimizerKind;
  for (const HostUpdateKind& kind :
       {HostUpdateKind{OptimizerKind::sgd, at::kFloat},
        {OptimizerKind::adamw, at::kFloat},
        {executor::OptimizerSpec(OptimizerKind::adamw, /*master=*/true), at::kBFloat16}}) {
    CalibrationOptions options = few;
    options.updates = kind;
    const auto calibration = calibrate(hand_device(), options);
    ASSERT_TRUE(calibration.ok());
    EXPECT_GT(calibration->host_update_ns, 0);
    EXPECT_GT(calibration->host_update_ns_per_gib, 0);
    EXPECT_GT(calibration->host_update_interference, 0);
    EXPECT_LE(calibration->host_update_interference, kPpm);
  }
  EXPECT_EQ(hand_device().memory().requested, before);
}

TEST(Calibrate, TheHostsUpdatesAreThoseOfTheModelsLargeParameters) {
  const auto of = [](std::int64_t elements, at::ScalarType dtype) {
    return executor::NamedTensor{"p", at::empty({elements}, dtype)};
  };
  const executor::OptimizerSpec adamw(executor::OptimizerKind::adamw);
  const HostUpdateKind kind =
      host_update_kind(adamw, {of(10, at::kFloat), of(60, at::kBFloat16), of(10, at::kFloat),
                               of(70, at::kBFloat16), of(10, at::kFloat)});
  EXPECT_EQ(kind.optimizer, adamw);
  EXPECT_EQ(kind.dtype, at::kBFloat16);
  EXPECT_EQ(kind.elements, 60);  // 30 are in smaller ones, 70 in larger ones
  EXPECT_EQ(host_update_kind(adamw, {}).elements, 0);
  EXPECT_EQ(host_update_kind(adamw, {of(7, at::kDouble)}).elements, 7);
}

TEST(Calibrate, ADisturbedMeasurementIsNotBelieved) {
  // 40 ns of beginning and end, 10 copies of 100 ns each.
  EXPECT_EQ(time_of_one_copy(1040, 2040, 10), 100);
  // The first run was held up for 600 ns: 40 a copy by the difference, 51 is half the average.
  EXPECT_EQ(time_of_one_copy(1640, 2040, 10), 51);
  // .. for longer than the second one took: a negative difference.
  EXPECT_EQ(time_of_one_copy(5040, 2040, 10), 51);
  EXPECT_EQ(time_of_one_copy(0, 0, 10), 1);
}

TEST(Calibrate, WhatDisturbsMostRoundsIsNotSeen) {
  EXPECT_EQ(undisturbed({200, 100, 101, 230, 220, 102, 240, 210}), 101);
  EXPECT_EQ(undisturbed({7}), 7);
}

TEST(Calibrate, RoundsAddUp) {
  auto arena = hand_device().host_arena(Bytes{32} << 10);
  ASSERT_TRUE(arena.ok());
  const at::Tensor buffer = hand_device().allocate_buffer(32 << 10, executor::kOffPlanTag);
  auto* const memory = static_cast<std::byte*>(buffer.mutable_data_ptr());
  const CopyEnds out{memory, arena->data()};
  const CopyEnds in{memory + (16 << 10), arena->data() + (16 << 10)};
  int products = 0;
  LinkRounds link(hand_device(), out, in, 16 << 10, [&products] { ++products; });
  link.run(2);
  link.run(3);
  EXPECT_EQ(products, 5);
  Calibration calibration;
  link.write(calibration);
  EXPECT_EQ(calibration.h2d.bytes, (std::vector<Bytes>{4 << 10, 16 << 10}));
  EXPECT_EQ(calibration.d2h.bytes, calibration.h2d.bytes);
  for (const LinkCurve* curve : {&calibration.d2h, &calibration.h2d}) {
    for (std::size_t size = 0; size < curve->bytes.size(); ++size) {
      EXPECT_GE(curve->bytes_per_second[size], curve->bytes_per_second_p10[size]);
    }
  }
}

TEST(Calibrate, ASizeThatTheHostDoesNotHaveIsAnError) {
  const auto calibration = calibrate(hand_device(), {.largest = Bytes{1} << 49});
  ASSERT_FALSE(calibration.ok());
  EXPECT_EQ(calibration.error().code, ErrorCode::environment);
}

TEST(IssueCosts, AreMeasuredAndLeaveNothingBehind) {
  executor::install_saved_tensor_engine();
  auto arena = hand_device().host_arena(Bytes{64} << 10);
  ASSERT_TRUE(arena.ok());
  const Bytes before = hand_device().memory().requested;
  Calibration calibration;
  measure_issue_costs(hand_device(), arena->data(), arena->bytes(), calibration);
  EXPECT_GT(calibration.launch_ns, 0);
  EXPECT_GT(calibration.sync_ns, 0);
  EXPECT_GT(calibration.copy_issue_ns, 0);
  EXPECT_GT(calibration.wait_issue_ns, 0);
  EXPECT_GE(calibration.hook_ns, 0);
  EXPECT_EQ(executor::driver(), nullptr);
  EXPECT_EQ(hand_device().memory().requested, before);
}

class StepHooksOf : public ::testing::Test {
 protected:
  const at::Tensor weight = testing::parameter({16, 16});
  bool fails = false;
  StepFunctions functions;
  std::shared_ptr<const Trace> trace;

  void SetUp() override {
    functions.step = [this] {
      weight.mutable_grad().reset();
      at::Tensor y = weight * 2;
      for (int i = 0; i < 4; ++i) y = at::mm(y, weight).tanh();
      if (fails) throw std::runtime_error("the step fails");
      testing::backward(y.sum());
    };
    testing::HandStep recorded({weight}, {}, [this] {
      functions.step();
      return 0.0;
    });
    trace = std::make_shared<const Trace>(recorded.trace());
  }
};

TEST_F(StepHooksOf, AStepAreMeasuredAndLeaveNothingBehind) {
  functions.step();
  const Bytes before = hand_device().memory().requested;
  std::vector<std::int64_t> batches;
  functions.prepare = [&](std::int64_t k) { batches.push_back(k); };
  const auto hooks = measure_step_hooks(hand_device(), functions, trace, 5, StepBudget::exactly(3));
  ASSERT_TRUE(hooks.ok()) << hooks.error().text();
  EXPECT_EQ(hooks->hooks, static_cast<std::int64_t>(trace->saved.size() + trace->unpacks.size()));
  EXPECT_GT(hooks->hooks, 8);
  EXPECT_GT(hooks->plain_ns, 0);
  EXPECT_GT(hooks->planned_ns, 0);
  EXPECT_GE(hooks->hook_ns(), 0);
  EXPECT_EQ(batches, (std::vector<std::int64_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(executor::driver(), nullptr);
  EXPECT_EQ(hand_device().memory().requested, before);
}

TEST_F(StepHooksOf, AStepThatFailsLeaveNothingBehind) {
  functions.step();
  int steps = 0;
  functions.prepare = [&](std::int64_t) { fails = ++steps == 2; };  // the first planned one
  EXPECT_THROW(static_cast<void>(
                   measure_step_hooks(hand_device(), functions, trace, 0, StepBudget::exactly(7))),
               std::runtime_error);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(executor::driver(), nullptr);
  fails = false;
  functions.prepare = {};
  EXPECT_TRUE(measure_step_hooks(hand_device(), functions, trace, 0, StepBudget::exactly(1)).ok());
}

TEST(StepHooks, TakeTheDifferenceOverAllHooks) {
  EXPECT_EQ((StepHooks{1000, 1600, 6}).hook_ns(), 100);
  EXPECT_EQ((StepHooks{1000, 900, 6}).hook_ns(), 0);
  EXPECT_EQ((StepHooks{1000, 1600, 0}).hook_ns(), 0);
}

}  // namespace
}  // namespace stowage::profiler
