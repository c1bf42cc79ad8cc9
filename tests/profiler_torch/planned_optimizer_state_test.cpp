// Optimizer state under a plan, on the real device: where it is between steps, who may have it, and
// what happens to it when a step does not go as planned.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/torch/session.h"
#include "executor/absent_storage.h"
#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/schedule/tenant_kind.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/or_throw.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using executor::NamedTensor;
using executor::PlannedStep;
using testing::TwinSessions;

class OptimizerState : public ::testing::Test {
 protected:
  // All of it streams.
  [[nodiscard]] simulator::Schedule schedule() const {
    simulator::Decisions decisions;
    decisions.saved.resize(twins_.trace().saved.size());
    for (const StorageClass each : twins_.trace().storages.storage_class) {
      decisions.optimizer.state_streams.push_back(each == StorageClass::optimizer_state);
    }
    auto lowered = simulator::lower(twins_.index(), decisions);
    if (!lowered) throw std::runtime_error(lowered.error().text());
    EXPECT_FALSE(testing::tenants_of(lowered->schedule, simulator::kOptimizerState).empty());
    return std::move(lowered->schedule);
  }
  [[nodiscard]] std::vector<NamedTensor> state() { return twins_.planned().optimizer_state(); }

  TwinSessions twins_{"mlp:layers=2,width=32", 4, "adamw"};
};

TEST_F(OptimizerState, IsAwayBetweenStepsAndThereAgainWhenThePlanIsGone) {
  {
    const auto plan = twins_.plan(schedule());
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto result = twins_.expect_same_step(*plan, k);
      ASSERT_EQ(result.error, "");
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
      EXPECT_GT(result.report.loaded_bytes, 0);
      EXPECT_EQ(result.report.loaded_bytes, result.report.stored_bytes);
      EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
    }
    for (const NamedTensor& each : state()) {
      try {
        static_cast<void>(each.tensor.const_data_ptr());
        ADD_FAILURE() << each.name << " can be read";
      } catch (const c10::Error& error) {
        const std::string text = error.what_without_backtrace();
        EXPECT_NE(text.find("optimizer state " + each.name + " is not on the device"),
                  std::string::npos)
            << text;
      }
    }
    // Parameters come back for an evaluation, and that needs none of it.
    plan->materialise();
    EXPECT_ANY_THROW(static_cast<void>(state()[0].tensor.const_data_ptr()));
    twins_.expect_same_state(*plan);
  }
  testing::expect_same_bits(twins_.device(), state(), twins_.twin().optimizer_state());
}

std::unique_ptr<cli::Session> new_session(const std::string& optimizer) {
  cli::RunFlags flags;
  flags.device = testing::test_device_name();
  flags.batch = 4;
  flags.optimizer = optimizer;
  flags.threads = 1;
  cli::CommandFiles files;
  return testing::or_throw(cli::Session::create(
      testing::or_throw(cli::make_request("mlp:layers=2,width=32", flags, files))));
}

// The other pieces of a parameter's state stay: they are made where its first update is.
TEST(OptimizerStateInPart, OfAParameterIsMadeInItsUpdate) {
  for (const char* optimizer :
       {"adamw", "adamw:master=fp32", "adam:master=fp32,update=backward",
        "sgd:weight_decay=0.1,momentum=0.9,dampening=0.5", "sgd:master=fp32,momentum=0.9",
        "sgd:update=backward,momentum=0.9"}) {
    for (std::size_t left_out = 0; left_out < 3; ++left_out) {
      SCOPED_TRACE(optimizer + std::string(", every third from ") + std::to_string(left_out));
      TwinSessions twins("mlp:layers=2,width=32", 4, optimizer);
      simulator::Decisions decisions;
      decisions.saved.resize(twins.trace().saved.size());
      std::size_t pieces = 0;
      for (const StorageClass each : twins.trace().storages.storage_class) {
        const bool is_state = each == StorageClass::optimizer_state;
        decisions.optimizer.state_streams.push_back(is_state && pieces++ % 3 != left_out);
      }
      auto lowered = simulator::lower(twins.index(), decisions);
      ASSERT_TRUE(lowered.ok()) << lowered.error().text();
      // The twins have made a step; these have not.
      const auto planned = new_session(optimizer);
      executor::PlannedStepOptions options;
      options.optimizer_state = planned->step().state_maker();
      auto plan = PlannedStep::create(planned->device(), twins.shared_trace(), lowered->schedule,
                                      planned->step().parameters(), options);
      ASSERT_TRUE(plan.ok()) << plan.error().text();
      const auto plain = new_session(optimizer);
      for (std::int64_t k = 0; k < 3; ++k) {
        plain->step().prepare(k);
        const double loss = plain->step().step();
        planned->step().prepare(k);
        (*plan)->begin_step();
        EXPECT_EQ(planned->step().step(), loss);
        const auto report = (*plan)->end_step();
        ASSERT_TRUE(report.ok()) << report.error().text();
        EXPECT_TRUE(report->on_plan) << report->first_difference;
      }
      (*plan)->materialise_all();
      testing::expect_same_bits(planned->device(), planned->step().optimizer_state(),
                                plain->step().optimizer_state());
      testing::expect_same_bits(planned->device(), planned->step().parameters(),
                                plain->step().parameters());
    }
  }
}

TEST_F(OptimizerState, HasToBeThere) {
  executor::PlannedStepOptions options;
  const auto create = [&] {
    return PlannedStep::create(twins_.device(), twins_.shared_trace(), schedule(),
                               twins_.planned().parameters(), options);
  };
  auto plan = create();
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::bad_input);
  EXPECT_NE(plan.error().text().find("which is not there"), std::string::npos)
      << plan.error().text();
  // One piece is missing.
  options.optimizer_state = [&](const std::vector<NamedTensor>& parameters) {
    EXPECT_EQ(parameters.size(), twins_.planned().parameters().size());
    std::vector<NamedTensor> rest = state();
    rest.pop_back();
    return rest;
  };
  EXPECT_FALSE(create().ok());
  // Of another size.
  options.optimizer_state = [&](const std::vector<NamedTensor>&) {
    std::vector<NamedTensor> other = state();
    other.back().tensor = at::zeros({3}, twins_.device().torch_device());
    return other;
  };
  plan = create();
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().text().find("none of that size"), std::string::npos)
      << plan.error().text();
  // Nothing was taken away by that.
  testing::expect_same_bits(twins_.device(), state(), twins_.twin().optimizer_state());
}

TEST_F(OptimizerState, IsOfOnePlanAtATime) {
  const auto plan = twins_.plan(schedule());
  executor::PlannedStepOptions options;
  options.optimizer_state = twins_.planned().state_maker();
  const auto second = PlannedStep::create(twins_.device(), twins_.shared_trace(), schedule(),
                                          twins_.planned().parameters(), options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().hint, "one plan at a time has an optimizer's state");
  const auto result = twins_.expect_same_step(*plan, 0);
  EXPECT_EQ(result.error, "");
}

// An exception between two updates: the state of the first is new by then and that of the others
// old; as without a plan.
TEST_F(OptimizerState, IsNotLostByAnExceptionBetweenUpdates) {
  const auto plan = twins_.plan(schedule());
  ASSERT_EQ(twins_.expect_same_step(*plan, 0).error, "");
  int ends = 0;
  const auto fails = [&](const std::string& event) {
    if (event == "update_end" && ++ends == 2) throw std::runtime_error("in the optimizer");
  };
  EXPECT_EQ(twins_.run_planned(*plan, 1, fails).error, "in the optimizer");
  ends = 0;
  EXPECT_EQ(twins_.run_twin(1, fails).error, "in the optimizer");
  twins_.expect_same_state(*plan, /*gradients=*/false);
  for (std::int64_t k = 2; k < 4; ++k) {
    const auto result = twins_.expect_same_step(*plan, k);
    ASSERT_EQ(result.error, "");
    EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
  }
}

// State that a plan wanted and that has no home yet is no memory that anybody reads.
TEST(WithoutMemory, HasTheFormOfAndThrows) {
  const at::Tensor like = at::ones({3, 4}).t();
  const at::Tensor zeros = executor::without_memory(like, at::kFloat, "nobody has made it");
  EXPECT_EQ(zeros.sizes(), like.sizes());
  EXPECT_EQ(zeros.strides(), like.strides());
  EXPECT_EQ(zeros.dtype(), like.dtype());
  EXPECT_EQ(zeros.nbytes(), like.nbytes());
  EXPECT_TRUE(executor::has_no_memory_yet(*zeros.storage().unsafeGetStorageImpl()));
  EXPECT_FALSE(executor::has_no_memory_yet(*like.storage().unsafeGetStorageImpl()));
  try {
    zeros.add_(1);
    ADD_FAILURE() << "an op ran";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what_without_backtrace()).find("nobody has made it"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace stowage
