// The optimizer on the host, on the real device: a step whose parameters the host updates is the
// step without a plan, bit for bit, where the device computes as the host does (the CPU device).
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "cli/torch/session.h"
#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/plan_structure.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/or_throw.h"

namespace stowage {
namespace {

using executor::NamedTensor;
using executor::PlannedStep;
using testing::TwinSessions;

// A plan on the step that it makes of a recording.
struct Applied {
  Applied(const Trace& trace, const simulator::Plan& plan)
      : step(unrolled(trace, plan)), index(step) {
    auto lowered = simulator::lower(index, plan);
    if (!lowered) throw std::runtime_error(lowered.error().text());
    for (const simulator::LoweringNote& note : lowered->notes) {
      ADD_FAILURE() << simulator::subject_of(index.trace(), note) << ": " << note.text;
    }
    schedule = std::move(lowered->schedule);
  }
  static simulator::Step unrolled(const Trace& trace, const simulator::Plan& plan) {
    auto step = simulator::unroll(trace, plan);
    if (!step) throw std::runtime_error(step.error().text());
    return std::move(step).value();
  }

  simulator::Step step;
  simulator::StepIndex index;
  simulator::Schedule schedule;
};

simulator::Plan updates_on_the_host(const std::string& layer = "*") {
  simulator::Plan plan;
  plan.optimizer = {{layer, simulator::StatePlace::host}};
  return plan;
}

struct Case {
  const char* model;
  const char* optimizer;
  const char* dtype;
};

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& each : parameters) tensors.push_back(each.tensor);
  return tensors;
}

class HostUpdates : public ::testing::TestWithParam<Case> {};

TEST_P(HostUpdates, AreThoseOfTheStepWithoutAPlan) {
  TwinSessions twins(GetParam().model, 2, GetParam().optimizer, GetParam().dtype);
  if (testing::test_device_name() != "cpu") {
    twins.twin().update_through_host(tensors_of(twins.twin().parameters()));
  }
  const Applied applied(twins.trace(), updates_on_the_host());
  const auto updates = simulator::host_updates(applied.index.trace(), applied.schedule);
  EXPECT_EQ(updates.size(), twins.planned().parameters().size());
  const simulator::ReplayResult predicted = simulator::replay(applied.index, applied.schedule);
  EXPECT_GT(predicted.host_update_ns, 0);
  {
    const auto plan = twins.plan(applied.schedule, executor::OffPlan::refuse,
                                 simulator::structure_of(applied.step));
    for (std::int64_t k = 0; k < 4; ++k) {
      const auto result = twins.expect_same_step(*plan, k);
      ASSERT_EQ(result.error, "");
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
      EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
      if (k >= 2) {
        EXPECT_EQ(result.peak, predicted.peak_requested) << "step " << k;
      }
    }
    EXPECT_EQ(plan->host_bytes(), predicted.host_bytes);
    EXPECT_EQ(plan->host_high_water(), predicted.host_bytes);
  }
  // The plan is gone: what it left behind trains on as ever.
  testing::expect_same_bits(twins.device(), twins.planned().optimizer_state(),
                            twins.twin().optimizer_state());
  twins.planned().prepare(4);
  twins.twin().prepare(4);
  EXPECT_EQ(twins.planned().step(), twins.twin().step());
  testing::expect_same_bits(twins.device(), twins.planned().parameters(),
                            twins.twin().parameters());
  testing::expect_same_bits(twins.device(), twins.planned().optimizer_state(),
                            twins.twin().optimizer_state());
}

// The reference of a GPU, where it has to be the same as without it. From the first step on.
TEST_P(HostUpdates, AreTheSameThroughTheHostWithoutAPlan) {
  if (testing::test_device_name() != "cpu") GTEST_SKIP() << "of one arithmetic on the CPU alone";
  const auto session = [] {
    cli::RunFlags flags;
    flags.device = "cpu";
    flags.batch = 2;
    flags.optimizer = GetParam().optimizer;
    flags.dtype = GetParam().dtype;
    flags.threads = 1;
    cli::CommandFiles files;
    return testing::or_throw(
        cli::Session::create(testing::or_throw(cli::make_request(GetParam().model, flags, files))));
  };
  const auto plain = session();
  const auto through = session();
  const std::vector<NamedTensor> parameters = through->step().parameters();
  through->step().update_through_host(tensors_of(parameters));
  for (std::int64_t k = 0; k < 3; ++k) {
    EXPECT_EQ(plain->step().run(k), through->step().run(k));
    testing::expect_same_bits(plain->device(), through->step().parameters(),
                              plain->step().parameters());
    testing::expect_same_bits(plain->device(), through->step().optimizer_state(),
                              plain->step().optimizer_state());
  }
}

// A step cannot skip what the host has begun, and one that has thrown is followed by clean ones.
TEST(HostUpdatesThatDoNotGoAsPlanned, AreRefusedByNameAndFollowedByCleanSteps) {
  TwinSessions twins("mlp:layers=2,width=32", 4, "adamw");
  const Applied applied(twins.trace(), updates_on_the_host());
  const auto structure = simulator::structure_of(applied.step);
  EXPECT_THROW(
      static_cast<void>(twins.plan(applied.schedule, executor::OffPlan::offload_all, structure)),
      std::runtime_error);
  executor::PlannedStepOptions nobody;
  nobody.structure = structure;
  nobody.optimizer_state = twins.planned().state_maker();
  const auto refused = PlannedStep::create(twins.device(), twins.shared_trace(), applied.schedule,
                                           twins.planned().parameters(), nobody);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("nobody says how"), std::string::npos);

  const auto plan = twins.plan(applied.schedule, executor::OffPlan::refuse, structure);
  twins.planned().prepare(0);
  plan->begin_step();
  try {
    static_cast<void>(twins.planned().step(executor::Update::skipped));
    ADD_FAILURE() << "the update was skipped";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what_without_backtrace()).find("cannot skip"), std::string::npos);
  }
  plan->abort_step();
  const auto thrown = twins.run_planned(*plan, 1, [](const std::string& event) {
    if (event.starts_with("backward_end")) throw std::runtime_error("planted");
  });
  EXPECT_NE(thrown.error, "");
  for (std::int64_t k = 2; k < 5; ++k) {
    const auto result = twins.run_planned(*plan, k);
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, HostUpdates,
    ::testing::Values(Case{"mlp:layers=2,width=32", "sgd", "fp32"},
                      Case{"mlp:layers=2,width=32", "adam", "fp32"},
                      Case{"mlp:layers=2,width=32", "adamw", "bf16"},
                      Case{"mlp:layers=2,width=32", "adamw:master=fp32", "bf16"},
                      Case{"gpt2:layers=2,width=64,seq=32,vocab=128", "adamw", "fp32"},
                      Case{"llama3-8b:layers=2,width=128,heads=4,seq=16,vocab=64",
                           "adamw:master=fp32", "bf16"}));

}  // namespace
}  // namespace stowage
