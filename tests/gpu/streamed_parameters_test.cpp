// Parameters that stream on a GPU: any stream of the caller's, nothing taken after the first steps,
// a budget that parameters and gradients do not fit into, loads beside compute.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/backward_thread.h"
#include "executor/device/cuda/cuda_device.h"
#include "simulator/replay/replay.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using testing::TwinSessions;
using Stream = simulator::ParameterPlan::Stream;

TEST(GpuStreamedPlans, RunOnTheCallersStream) {
  TwinSessions twins("mlp:layers=4,width=256", 64, "adamw");
  twins.device().synchronize();
  const c10::cuda::CUDAStreamGuard guard(
      c10::cuda::getStreamFromPool(false, twins.device().torch_device().index()));
  // cuBLAS may take workspaces of its own for this stream, once, and so does each plan ahead of it.
  const Bytes before = twins.device().memory().requested;
  executor::take_backward_workspace(twins.device().torch_device());
  static_cast<void>(twins.run_twin(0));
  static_cast<void>(twins.run_twin(1));
  const Bytes live = twins.device().memory().requested;
  static_cast<void>(twins.planned().run(0));
  static_cast<void>(twins.planned().run(1));
  ASSERT_EQ(twins.device().memory().requested, live);
  const Bytes workspaces = live - before;
  std::int64_t k = 2;
  for (const Stream stream : {Stream::always, Stream::forward}) {
    for (const std::int32_t prefetch : {0, 1, 3}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(stream) << " prefetch " << prefetch);
      const auto schedule = twins.stream(stream, prefetch);
      {
        const auto plan = twins.plan(schedule);
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ(twins.expect_same_step(*plan, k++).peak,
                    simulator::replay(twins.index(), schedule).peak_requested + workspaces)
              << "in step " << i << "; " << plan->look_ahead();
        }
      }
      // Back in memory of their own.
      testing::expect_same_bits(twins.device(), twins.planned().parameters(),
                                twins.twin().parameters());
    }
  }
}

// Traps 27 and 29.
TEST(GpuStreamedPlans, TakeNothingFromTheDriverAndPeakAlike) {
  TwinSessions twins("mlp:layers=6,width=512", 256, "adamw");
  auto& device = twins.device();
  std::int64_t k = 0;
  for (const Stream stream : {Stream::always, Stream::forward}) {
    SCOPED_TRACE(static_cast<int>(stream));
    const auto plan = twins.plan(twins.stream(stream, 1));
    executor::MemoryStats steady;
    executor::MemoryStats after_first;
    std::size_t events = 0;
    for (int i = 0; i < 8; ++i) {
      static_cast<void>(twins.run_planned(*plan, k++));
      const executor::MemoryStats stats = device.memory();
      const std::size_t made = dynamic_cast<const executor::CudaDevice&>(device).events_created();
      if (i == 0) after_first = stats;
      if (i == 0) events = made;
      if (i == 2) steady = stats;
      if (i < 3) continue;
      EXPECT_EQ(stats.peak_requested, steady.peak_requested);
      EXPECT_EQ(stats.peak_active, steady.peak_active);
      EXPECT_EQ(stats.peak_reserved, steady.peak_reserved);
      EXPECT_EQ(stats.driver_allocations, after_first.driver_allocations);
      EXPECT_EQ(stats.pinned_blocks, after_first.pinned_blocks);
      EXPECT_EQ(made, events);
    }
  }
}

TEST(GpuStreamedPlans, TrainWhereParametersAndGradientsDoNotFit) {
  testing::RecordedModel recorded = testing::record_model("mlp:layers=24,width=1024", 64, "sgd");
  executor::Device& device = recorded.session->device();
  executor::TrainingStep& step = recorded.session->step();
  const simulator::StepIndex index(*recorded.trace);
  const testing::Bits start = testing::bits_of(device, step.parameters());
  const auto drop_gradients = [&] {
    for (const auto& each : step.parameters()) each.tensor.mutable_grad().reset();
    device.synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
  };
  const auto restore = [&] {
    drop_gradients();
    for (std::size_t i = 0; i < start.size(); ++i) {
      testing::store(device, step.parameters()[i].tensor, start[i]);
    }
  };
  std::vector<double> losses;
  for (std::int64_t k = 0; k < 3; ++k) losses.push_back(step.run(k));
  const testing::Bits expected = testing::bits_of(device, step.parameters());

  simulator::Plan rules;
  rules.parameters.emplace();
  rules.parameters->stream = Stream::always;
  rules.parameters->prefetch = 0;
  rules.budget.automatic = 0;  // what the optimizer wrote leaves at once
  for (int i = 0; i < 24; ++i) rules.parameters->shards.push_back({"layers." + std::to_string(i)});
  const auto lowering = simulator::lower(index, rules);
  ASSERT_TRUE(lowering.ok()) << lowering.error().text();
  const Bytes planned = simulator::replay(index, lowering->schedule).peak_requested;
  const Bytes resident =
      simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
  for (const auto& note : lowering->notes) ADD_FAILURE() << note.text;
  EXPECT_EQ(testing::parameters_of(lowering->schedule).size(), step.parameters().size());
  ASSERT_LT(planned, resident * 3 / 4);

  restore();
  {
    auto plan = executor::PlannedStep::create(device, recorded.trace, lowering->schedule,
                                              step.parameters(), {.poison_device = true});
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    device.synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    // Halfway between what both need: fragmentation has room, the resident step has none.
    device.set_memory_limit((planned + resident) / 2);
    for (std::int64_t k = 0; k < 3; ++k) {
      step.prepare(k);
      (*plan)->begin_step();
      EXPECT_EQ(step.step(), losses[static_cast<std::size_t>(k)]);
      ASSERT_TRUE((*plan)->end_step().ok());
    }
    EXPECT_TRUE(testing::bits_of(device, (*plan)->values()) == expected);
    drop_gradients();
    device.set_memory_limit(0);
  }
  EXPECT_TRUE(testing::bits_of(device, step.parameters()) == expected);
  restore();
  device.set_memory_limit((planned + resident) / 2);
  EXPECT_THROW(step.run(0), c10::OutOfMemoryError);
  device.set_memory_limit(0);
  drop_gradients();
}

}  // namespace
}  // namespace stowage
