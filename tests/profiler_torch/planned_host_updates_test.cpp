// The optimizer on the host, on the real device: a step whose parameters the host updates is the
// step without a plan, bit for bit, where the device computes as the host does (the CPU device).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/torch/session.h"
#include "executor/host_update_thread.h"
#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/profiler_torch/forwarding_device.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/or_throw.h"
#include "tests/support/slowdown.h"

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
      EXPECT_GT(result.report.host_update_ns, 0);
      if (k >= 2) {
        EXPECT_EQ(result.peak, predicted.peak_requested) << "step " << k;
      }
    }
    EXPECT_EQ(plan->host_bytes(), predicted.host_bytes);
    EXPECT_EQ(plan->host_high_water(), predicted.host_bytes);
  }
  // The plan is gone: what it left behind trains on as ever, by the arithmetic that it had.
  if (testing::test_device_name() != "cpu") {
    twins.planned().update_through_host(tensors_of(twins.planned().parameters()));
  }
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

// What is clipped is known behind backward: those updates stay, and nobody offers the host's.
TEST(HostUpdatesBehindClipping, StayOnTheDevice) {
  TwinSessions twins("mlp:layers=2,width=32", 4, "adamw:clip=1");
  const simulator::Plan plan = updates_on_the_host();
  const simulator::Step step = Applied::unrolled(twins.trace(), plan);
  EXPECT_TRUE(step.host_updates().empty());
  const auto lowered = simulator::lower(simulator::StepIndex(step), plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  ASSERT_FALSE(lowered->notes.empty());
  EXPECT_EQ(lowered->notes.front().text,
            "its update stays: the step uses its gradient between backward and its update");
  EXPECT_FALSE(twins.planned().host_updater());
}

// A gradient that is kept is in no step's hands alone: nothing of it moves.
TEST(HostUpdatesOfKeptGradients, StayOnTheDeviceAndSaySo) {
  TwinSessions twins("mlp:layers=2,width=32", 4, "adamw:set_to_none=false");
  simulator::Plan plan = updates_on_the_host();
  plan.gradients = {{"*", simulator::GradientPlace::host}};
  const simulator::Step step = Applied::unrolled(twins.trace(), plan);
  EXPECT_TRUE(step.host_updates().empty());
  const simulator::StepIndex index(step);
  const auto lowered = simulator::lower(index, plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  std::vector<std::string> notes;
  for (const simulator::LoweringNote& note : lowered->notes) notes.push_back(note.text);
  EXPECT_TRUE(std::count(notes.begin(), notes.end(), "stays: it is kept from step to step") > 0);
  EXPECT_TRUE(std::count(notes.begin(), notes.end(),
                         "its update stays: of its gradient, it is kept from step to step") > 0);
  for (const auto placement :
       {simulator::PlacementMode::caching, simulator::PlacementMode::planned}) {
    simulator::Schedule schedule = lowered->schedule;
    schedule.placement = placement;
    const auto planned = twins.plan(schedule, executor::OffPlan::refuse);
    for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(twins.expect_same_step(*planned, k).error, "");
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

// As many gradients have left as had come by then; the steps behind it know nothing of them, be
// they planned or plain.
TEST(HostUpdatesInBackward, ThatThrowAreFollowedByCleanSteps) {
  TwinSessions twins("mlp:layers=3,width=24", 4, "adamw:update=backward");
  const Applied applied(twins.trace(), updates_on_the_host());
  const auto structure = simulator::structure_of(applied.step);
  {
    const auto plan = twins.plan(applied.schedule, executor::OffPlan::refuse, structure);
    int ends = 0;
    const auto thrown = twins.run_planned(*plan, 0, [&](const std::string& event) {
      if (event.starts_with("backward_end") && ++ends == 2) throw std::runtime_error("planted");
    });
    EXPECT_NE(thrown.error.find("planted"), std::string::npos) << thrown.error;
    EXPECT_TRUE(twins.planned().gradients().empty());
    for (std::int64_t k = 1; k < 4; ++k) {
      const auto result = twins.run_planned(*plan, k);
      EXPECT_EQ(result.error, "");
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
      EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
      EXPECT_TRUE(twins.planned().gradients().empty());
    }
  }
  twins.planned().prepare(4);
  EXPECT_GT(twins.planned().step(), 0);
  EXPECT_TRUE(twins.planned().gradients().empty());
}

// Whoever waits for an update stands still: the update here goes on when somebody does.
TEST(WaitsForHostUpdates, AreStallsOfTheDevice) {
  class Device final : public testing::ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    void stand_still(const std::function<void()>& wait) override {
      if (times++ == 0) go_on.set_value();
      ForwardingDevice::stand_still(wait);
    }
    int times = 0;
    std::promise<void> go_on;
  };
  Device device(testing::hand_device());
  device.reset_peak();
  executor::HostUpdateThread thread(device);
  std::uint64_t number = 0;
  bool is_let = false;
  number = thread.submit({}, [&] {
    is_let =
        device.go_on.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  });
  thread.wait(0);  // nothing to wait for
  EXPECT_EQ(device.times, 0);
  thread.wait(number);
  EXPECT_EQ(device.times, 1);
  EXPECT_TRUE(is_let);
  // Done by now: as many in each step, however fast its updates are.
  thread.wait_for_all();
  EXPECT_EQ(device.times, 2);
  if (testing::test_device_name() == "cpu") {
    EXPECT_GT(device.stall_ns(), 0);
  }
}

// What the host updates is drawn parameter by parameter, and what else moves with it: saved
// tensors, shards and their modes, streaming state, gradients, a budget, planned memory or not.
class RandomHostUpdates {
 public:
  RandomHostUpdates(TwinSessions& twins, std::uint32_t seed) : twins_(twins), random_(seed) {}

  // Of the recording: what the host can update.
  simulator::Structure structure() {
    const Trace& trace = twins_.trace();
    const simulator::DeviceUpdates on_device(twins_.index());
    simulator::Structure structure;
    const int density = 1 + static_cast<int>(random_() % 100);
    for (const StorageId parameter : on_device.parameters()) {
      EXPECT_EQ(on_device.reason_to_stay(parameter), "")
          << trace.string(trace.layers.name[trace.storages.layer[parameter.index()].index()]);
      if (chance(density)) structure.host_updates.push_back(parameter);
    }
    return structure;
  }

  simulator::Decisions decisions(const simulator::StepIndex& index) {
    const Trace& trace = index.trace();
    const std::vector<StorageId>& on_host = index.step().host_updates();
    simulator::Decisions decisions;
    decisions.saved.resize(trace.saved.size());
    if (chance(40)) decisions.budget = trace.peaks.requested.empty() ? 0 : Bytes{1} << 16;
    decisions.parameters.shard_of.assign(trace.storages.size(), -1);
    constexpr simulator::StreamMode kModes[] = {simulator::StreamMode::always,
                                                simulator::StreamMode::forward,
                                                simulator::StreamMode::backward};
    decisions.parameters.stream =
        simulator::StreamModes({kModes[random_() % 3], kModes[random_() % 3]});
    if (chance(50)) decisions.parameters.prefetch = static_cast<std::int32_t>(random_() % 3);
    decisions.optimizer.updated_on_host.assign(trace.storages.size(), false);
    decisions.optimizer.state_streams.assign(trace.storages.size(), false);
    decisions.gradients.at_home.assign(trace.storages.size(), false);
    const int streaming = static_cast<int>(random_() % 101);
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      const StorageId owner = trace.storages.parameter[s];
      switch (trace.storages.storage_class[s]) {
        case StorageClass::parameter:
          if (chance(streaming)) {
            decisions.parameters.shard_of[s] = static_cast<std::int32_t>(random_() % 2);
          }
          decisions.optimizer.updated_on_host[s] = is_in(on_host, index, StorageId(s));
          break;
        case StorageClass::optimizer_state:
          decisions.optimizer.state_streams[s] = !is_in(on_host, index, owner) && chance(50);
          break;
        case StorageClass::gradient:
          decisions.gradients.at_home[s] = trace.storages.alloc_event[s].valid() && chance(50);
          break;
        default:
          break;
      }
    }
    const int leaving = static_cast<int>(random_() % 101);
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      if (!trace.storages.alloc_event[s].valid() || !chance(leaving)) continue;
      for (const SavedId saved : index.saved_of(StorageId(s))) {
        decisions.saved[saved.index()].decision = simulator::Decision::offload;
      }
    }
    return decisions;
  }

  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

 private:
  static bool is_in(const std::vector<StorageId>& on_host, const simulator::StepIndex& index,
                    StorageId parameter) {
    if (!parameter.valid()) return false;
    const StorageId recorded = index.step().origin(parameter).row;
    return std::find(on_host.begin(), on_host.end(), recorded) != on_host.end();
  }

  TwinSessions& twins_;
  std::mt19937 random_;
};

class RandomHostUpdatePlans : public ::testing::TestWithParam<Case> {};

TEST_P(RandomHostUpdatePlans, AreThoseOfTheStepWithoutAPlan) {
  if (testing::test_device_name() != "cpu") GTEST_SKIP() << "of one arithmetic on the CPU alone";
  TwinSessions twins(GetParam().model, 2, GetParam().optimizer, GetParam().dtype);
  std::int64_t k = 0;
  const std::uint32_t last = testing::stride() == 1 ? 34 : 17;
  for (std::uint32_t seed = 1; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomHostUpdates random(twins, seed);
    const simulator::Structure structure = random.structure();
    auto step = simulator::unroll(twins.trace(), structure);
    ASSERT_TRUE(step.ok()) << step.error().text();
    const simulator::StepIndex index(*step);
    auto lowered = simulator::lower(index, random.decisions(index));
    ASSERT_TRUE(lowered.ok()) << lowered.error().text();
    if (random.chance(50)) lowered->schedule.placement = simulator::PlacementMode::planned;
    EXPECT_EQ(simulator::host_updates(index.trace(), lowered->schedule).size(),
              structure.host_updates.size());
    const simulator::ReplayResult predicted = simulator::replay(index, lowered->schedule);
    const auto plan = twins.plan(lowered->schedule, executor::OffPlan::refuse, structure);
    for (int steps = 0; steps < 3; ++steps) {
      const auto result = twins.expect_same_step(*plan, k++);
      ASSERT_EQ(result.error, "");
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
      EXPECT_EQ(result.report.unplanned_stored_bytes, 0);
      EXPECT_EQ(result.peak, predicted.peak_requested);
    }
    EXPECT_EQ(plan->host_high_water(), predicted.host_bytes);
    if (::testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, RandomHostUpdatePlans,
    ::testing::Values(
        Case{"mlp:layers=2,width=32", "adamw:master=fp32", "bf16"},
        Case{"mlp:layers=3,width=24", "sgd:master=fp32,momentum=0.9", "bf16"},
        Case{"gpt2:layers=2,width=64,seq=32,vocab=128",
             "sgd:weight_decay=0.01,momentum=0.9,nesterov=true", "fp32"},
        Case{"gpt2:layers=2,width=64,seq=32,vocab=128", "adam", "fp32"},
        Case{"gpt2:layers=2,width=64,seq=32,vocab=128", "adamw:update=backward", "fp32"},
        Case{"mlp:layers=3,width=24", "sgd:momentum=0.9,update=backward", "fp32"},
        Case{"llama3-8b:layers=2,width=128,heads=4,seq=16,vocab=64", "adamw", "fp32"}));

INSTANTIATE_TEST_SUITE_P(
    Models, HostUpdates,
    ::testing::Values(
        Case{"mlp:layers=2,width=32", "sgd", "fp32"},
        Case{"mlp:layers=2,width=32", "adamw:lr=0.01,warmup=10,decay=cosine,total=14", "fp32"},
        Case{"mlp:layers=2,width=32", "sgd:momentum=0.9,dampening=0.5", "fp32"},
        Case{"mlp:layers=2,width=32", "sgd:master=fp32,momentum=0.9", "bf16"},
        Case{"mlp:layers=2,width=32", "adam", "fp32"},
        Case{"mlp:layers=2,width=32", "adamw", "bf16"},
        Case{"mlp:layers=2,width=32", "adamw:master=fp32", "bf16"},
        Case{"gpt2:layers=2,width=64,seq=32,vocab=128", "adamw", "fp32"},
        Case{"mlp:layers=2,width=32", "sgd:update=backward", "fp32"},
        Case{"gpt2:layers=2,width=64,seq=32,vocab=128", "adamw:update=backward", "fp32"},
        Case{"llama3-8b:layers=2,width=128,heads=4,seq=16,vocab=64",
             "adamw:master=fp32,update=backward", "bf16"},
        Case{"llama3-8b:layers=2,width=128,heads=4,seq=16,vocab=64", "adamw:master=fp32", "bf16"}));

}  // namespace
}  // namespace stowage
