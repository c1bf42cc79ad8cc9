// Planned memory on a GPU that has no room beside it: pages are lent between steps.
#include <ATen/Functions.h>
#include <ATen/cuda/MemPool.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "executor/device/step_memory.h"
#include "executor/planned_step.h"
#include "simulator/placement/memory_layout.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/or_throw.h"

namespace stowage {
namespace {

constexpr const char* kModel = "mlp:layers=4,width=256";

// A model and its plan, whose parameters stream.
struct Planned {
  Planned() {
    simulator::Schedule schedule = twins.stream(simulator::ParameterPlan::Stream::always, 1);
    schedule.placement = simulator::PlacementMode::planned;
    plan = testing::or_throw(executor::PlannedStep::create(
        twins.device(), twins.shared_trace(), std::move(schedule), twins.planned().parameters(),
        {.older = twins.planned().older_tensors()}));
  }
  ~Planned() { twins.device().set_memory_limit(0); }  // so that all that streams comes back
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  // Ours under the limit that there is, the twin's without.
  executor::StepReport expect_same_step(Bytes limit) {
    twins.device().set_memory_limit(limit);
    const testing::TwinSessions::Result ours = twins.run_planned(*plan, next);
    EXPECT_EQ(ours.error, "");
    whole_in_step = plan->memory()->bytes();
    twins.device().set_memory_limit(0);
    EXPECT_EQ(twins.run_twin(next++).loss, ours.loss);
    twins.expect_same_state(*plan);
    twins.device().release_cache();
    twins.device().set_memory_limit(limit);
    return ours.report;
  }
  testing::TwinSessions twins{kModel, 4096, "adamw"};
  std::unique_ptr<executor::PlannedStep> plan;
  std::int64_t next = 0;
  Bytes whole_in_step = 0;
};

class LentMemory : public ::testing::Test {
 protected:
  void TearDown() override {
    device().set_memory_limit(0);
    c10::cuda::CUDACachingAllocator::setMemoryFraction(1.0, device().torch_device().index());
  }
  static executor::Device& device() { return testing::hand_device(); }
  // What is not used does not count.
  static Bytes reserved() {
    device().release_cache();
    return device().memory().reserved;
  }
  static at::Tensor make(Bytes bytes) {
    return at::empty({bytes}, at::TensorOptions(device().torch_device()).dtype(at::kByte));
  }
};

TEST_F(LentMemory, WhatIsStillThereKeepsTheNextStepOut) {
  Planned model;
  model.expect_same_step(0);
  const Bytes whole = model.plan->memory()->bytes();
  const Bytes limit = reserved();
  device().set_memory_limit(limit);
  at::Tensor evaluated = make(whole / 2);
  EXPECT_LT(model.plan->memory()->bytes(), whole / 2);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::string error = testing::error_of([&] { model.plan->begin_step(); });
    EXPECT_NE(error.find("of the plan's memory were lent and cannot come back"), std::string::npos)
        << error;
    EXPECT_NE(error.find("free what was made between steps"), std::string::npos) << error;
  }
  EXPECT_THROW(model.plan->begin_step(), c10::OutOfMemoryError);
  evaluated.reset();
  model.expect_same_step(limit);
  EXPECT_EQ(model.whole_in_step, whole);
  EXPECT_EQ(model.plan->memory()->report().conflicts, 0);
  EXPECT_EQ(model.plan->memory()->report().unforeseen, 0);
}

// Under a limit a plan's pages count once, those that it takes back as well.
TEST_F(LentMemory, TheOtherAllocatorHasTheRestOfALimit) {
  constexpr Bytes kRest = Bytes{64} << 20;
  Planned model;
  model.expect_same_step(0);
  const Bytes whole = model.plan->memory()->bytes();
  const Bytes limit = reserved() + kRest;
  device().set_memory_limit(limit);
  const auto before = device().observed_allocator();
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->room, kRest);
  static_cast<void>(make(whole / 2));
  EXPECT_EQ(model.plan->memory()->lent(), 1);
  static_cast<void>(reserved());
  const auto lent = device().observed_allocator();
  ASSERT_TRUE(lent.has_value());
  EXPECT_EQ(lent->room, kRest);
}

// A pool of the user's (a graph that is captured has one) keeps its addresses to itself.
TEST_F(LentMemory, WhatGoesIntoAPoolIsNoPlans) {
  namespace native = c10::cuda::CUDACachingAllocator;
  constexpr Bytes kSize = 12345;
  Planned model;
  model.expect_same_step(0);
  const executor::StepMemory& memory = *model.plan->memory();
  const c10::DeviceIndex index = device().torch_device().index();
  model.plan->begin_step();
  const std::int64_t unforeseen = memory.report().unforeseen;
  {
    at::cuda::MemPool pool;
    native::beginAllocateToPool(index, pool.id(), [](cudaStream_t) { return true; });
    const at::Tensor in_pool = make(kSize);
    native::endAllocateToPool(index, pool.id());
    EXPECT_FALSE(memory.has(in_pool.const_data_ptr()));
    EXPECT_EQ(memory.report().unforeseen, unforeseen) << "it was asked for one";
    native::beginAllocateToPool(index, pool.id(), [](cudaStream_t) { return false; });
    static_cast<void>(make(kSize));
    native::endAllocateToPool(index, pool.id());
    EXPECT_EQ(memory.report().unforeseen, unforeseen + 1);
  }
  static_cast<void>(make(kSize));
  EXPECT_EQ(memory.report().unforeseen, unforeseen + 2);
  model.plan->abort_step();
  model.expect_same_step(0);
}

// torch.cuda.set_per_process_memory_fraction() of the user's.
TEST_F(LentMemory, AUsersShareOfTheDeviceHoldsForBoth) {
  namespace native = c10::cuda::CUDACachingAllocator;
  const c10::DeviceIndex index = device().torch_device().index();
  Planned model;
  model.expect_same_step(0);
  const Bytes total = native::get()->getMemoryInfo(index).second;
  native::setMemoryFraction(0.25, index);
  EXPECT_EQ(native::getMemoryFraction(index), 0.25);
  model.expect_same_step(0);
  const auto observed = device().observed_allocator();
  ASSERT_TRUE(observed.has_value());
  EXPECT_LE(observed->room + reserved(), total / 4);
  EXPECT_THROW(static_cast<void>(make(total / 4)), c10::OutOfMemoryError);
  model.plan.reset();
  EXPECT_EQ(native::getMemoryFraction(index), 0.25);
  EXPECT_THROW(static_cast<void>(make(total / 4)), c10::OutOfMemoryError);
  EXPECT_EQ(make(total / 8).numel(), total / 8);
  device().release_cache();
  native::setMemoryFraction(0.0, index);
  EXPECT_THROW(static_cast<void>(make(total / 64)), c10::OutOfMemoryError) << "a share of nothing";
  native::setMemoryFraction(1.0, index);
  EXPECT_EQ(native::getMemoryFraction(index), 1.0);
  EXPECT_EQ(make(total / 4).numel(), total / 4);
}

// What a step reserves is known ahead, whatever was made of its pages meanwhile.
TEST_F(LentMemory, AStepBehindItPeaksAsEver) {
  Planned model;
  model.expect_same_step(0);
  const executor::StepReport before = model.expect_same_step(0);
  const Bytes limit = reserved();
  device().set_memory_limit(limit);
  static_cast<void>(make(model.plan->memory()->bytes() / 2));
  EXPECT_EQ(model.plan->memory()->lent(), 1);
  device().reset_peak();
  const executor::StepReport behind = model.expect_same_step(limit);
  EXPECT_EQ(model.plan->memory()->lent(), 1);
  EXPECT_EQ(behind.memory.reserved, before.memory.reserved);
  EXPECT_EQ(behind.memory.peak_reserved, behind.memory.reserved);
  EXPECT_LE(behind.memory.reserved, limit);
}

TEST_F(LentMemory, IsNotLentInAStep) {
  Planned model;
  model.expect_same_step(0);
  const Bytes whole = model.plan->memory()->bytes();
  device().set_memory_limit(reserved());
  model.plan->begin_step();
  EXPECT_THROW(static_cast<void>(make(whole / 2)), c10::OutOfMemoryError);
  EXPECT_EQ(model.plan->memory()->bytes(), whole);
  model.plan->abort_step();
  EXPECT_EQ(make(whole / 2).numel(), whole / 2);
}

// A second plan, too: each has the pages in its own steps.
TEST_F(LentMemory, TwoPlansTakeTurnsWhereOneHasRoom) {
  Planned one;
  Planned two;
  one.expect_same_step(0);
  two.expect_same_step(0);
  const Bytes whole = one.plan->memory()->bytes();
  const Bytes whole_of_two = two.plan->memory()->bytes();
  const Bytes both = reserved();
  device().set_memory_limit(both);
  static_cast<void>(make(whole / 2));
  const Bytes idle = whole - one.plan->memory()->bytes();
  ASSERT_GT(idle, whole / 2);
  const Bytes limit = both - idle / 2;
  const std::int64_t lent = one.plan->memory()->lent();
  for (int turn = 0; turn < 3; ++turn) {
    one.expect_same_step(limit);
    EXPECT_EQ(one.whole_in_step, whole);
    EXPECT_LT(two.plan->memory()->bytes(), whole_of_two);
    two.expect_same_step(limit);
    EXPECT_EQ(two.whole_in_step, whole_of_two);
    EXPECT_LT(one.plan->memory()->bytes(), whole);
  }
  EXPECT_EQ(one.plan->memory()->lent(), lent + 3);
}

// While it is made as well.
TEST_F(LentMemory, MakesRoomForAnotherPlan) {
  Planned one;
  one.expect_same_step(0);
  testing::TwinSessions twins(kModel, 4096, "adamw");
  const Bytes whole = one.plan->memory()->bytes();
  ASSERT_GT(whole, Bytes{64} << 20);
  // What the other takes is more, since nothing of it streams; what else is there counts.
  device().set_memory_limit(whole + reserved());
  simulator::Schedule schedule =
      simulator::resident_schedule(twins.index(), simulator::PlacementMode::planned);
  auto another = testing::or_throw(executor::PlannedStep::create(
      twins.device(), twins.shared_trace(), std::move(schedule), twins.planned().parameters(),
      {.older = twins.planned().older_tensors()}));
  EXPECT_EQ(one.plan->memory()->lent(), 1);
  device().set_memory_limit(0);
  static_cast<void>(twins.expect_same_step(*another, 0));
  another.reset();
  one.expect_same_step(0);
}

// A limit bounds what it takes beside what else is there.
TEST_F(LentMemory, WhatIsThereAlreadyCountsWhenItIsMade) {
  constexpr Bytes kRest = Bytes{128} << 20;
  testing::TwinSessions twins(kModel, 4096, "adamw");
  const simulator::Schedule schedule =
      simulator::resident_schedule(twins.index(), simulator::PlacementMode::planned);
  const Bytes planned =
      simulator::memory_layout(twins.index(), schedule, device().page_choice()).placement.bytes();
  const auto create = [&] {
    return executor::PlannedStep::create(twins.device(), twins.shared_trace(), schedule,
                                         twins.planned().parameters(),
                                         {.older = twins.planned().older_tensors()});
  };
  const Bytes limit = reserved() + planned + kRest;
  at::Tensor other = make(2 * kRest);
  device().set_memory_limit(limit);
  const auto refused = create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::condition);
  EXPECT_NE(refused.error().text().find("are taken, and the limit is"), std::string::npos)
      << refused.error().text();
  other.reset();
  auto plan = testing::or_throw(create());
  EXPECT_LE(reserved(), limit);
  device().set_memory_limit(0);
  static_cast<void>(twins.expect_same_step(*plan, 0));
  EXPECT_EQ(plan->memory()->report().conflicts, 0);
  EXPECT_EQ(plan->memory()->report().unforeseen, 0);
}

}  // namespace
}  // namespace stowage
