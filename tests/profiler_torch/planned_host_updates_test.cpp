// The optimizer on the host, on the real device: a step whose parameters the host updates is the
// step without a plan, bit for bit, where the device computes as the host does (the CPU device).
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/plan_structure.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"

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

class HostUpdates : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    // A GPU's arithmetic is another one: there the reference is of the host's own.
    if (testing::test_device_name() != "cpu") GTEST_SKIP() << "bitwise on the CPU device alone";
  }
};

TEST_P(HostUpdates, AreThoseOfTheStepWithoutAPlan) {
  TwinSessions twins(GetParam().model, 2, GetParam().optimizer, GetParam().dtype);
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
