// Tensors that are saved ahead of the kernel that fills them stay, and only those.
#include "profiler/torch/pending_writes.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;
using testing::parameter;

// `rrelu` draws a slope for each element into a tensor of its own, which autograd saved when it
// was empty. No version counts that; a copy made at the save has none of the slopes.
TEST(PendingWrites, NoiseThatIsSavedAheadOfItsKernelStays) {
  const at::Tensor p = parameter({8, 8});
  HandStep step({p}, {}, [&] {
    return backward(at::rrelu(p * 2, 0.1, 0.4, /*training=*/true).pow(2).sum());
  });
  const Trace& trace = step.trace();
  // The noise, the input of rrelu, and the input of pow: its storage is the result's.
  ASSERT_EQ(trace.saved.size(), 3U);
  std::size_t stay = 0;
  for (const StorageId storage : trace.saved.storage) stay += storage.valid() ? 0 : 1;
  EXPECT_EQ(stay, 1U);
  testing::expect_exact_in_every_style(step);

  simulator::SavedRule everything;
  everything.decision = simulator::Decision::offload;
  const auto lowering = testing::expect_exact(step, std::vector{everything});
  EXPECT_EQ(testing::offloads_of(lowering.schedule).size(), 2U);
  EXPECT_TRUE(std::any_of(lowering.notes.begin(), lowering.notes.end(), [](const auto& note) {
    return note.text.ends_with("or its op writes to it once it is saved");
  }));
}

// Where the executor cannot know which it is, it refuses.
TEST(PendingWrites, ARunThatMayCopyNoiseUnfilledIsRefused) {
  const at::Tensor p = parameter({8, 8});
  HandStep step({p}, {}, [&] {
    return backward(at::rrelu(p * 2, 0.1, 0.4, /*training=*/true).pow(2).sum());
  });
  const auto lowering =
      step.lower(testing::offload_made(step.trace(), testing::styles().front().decision));
  const auto create = [&](const Trace& trace, executor::OffPlan off_plan) {
    const auto plan = executor::PlannedStep::create(
        testing::hand_device(), std::make_shared<const Trace>(trace),
        testing::in_test_memory(lowering.schedule), {}, {.off_plan = off_plan});
    return plan.ok() ? std::string() : plan.error().text();
  };
  EXPECT_EQ(create(step.trace(), executor::OffPlan::refuse), "");
  const std::string going_on = create(step.trace(), executor::OffPlan::offload_all);
  EXPECT_NE(going_on.find("random slopes (rrelu)"), std::string::npos) << going_on;
  // As an earlier version recorded it: the noise has a storage.
  Trace old = step.trace();
  const auto parameter_row = std::find(old.storages.storage_class.begin(),
                                       old.storages.storage_class.end(), StorageClass::parameter) -
                             old.storages.storage_class.begin();
  for (StorageId& storage : old.saved.storage) {
    if (!storage.valid()) storage = StorageId(static_cast<std::size_t>(parameter_row));
  }
  const std::string recorded_before = create(old, executor::OffPlan::refuse);
  EXPECT_NE(recorded_before.find("ahead of filling it"), std::string::npos) << recorded_before;
}

// What an op wrote in place is saved behind the write, which its version tells.
TEST(PendingWrites, ResultOfAnInPlaceOpMoves) {
  const at::Tensor p = parameter({8, 8});
  HandStep step({p}, {}, [&] { return backward((p * 2).exp_().sum()); });
  ASSERT_EQ(step.trace().saved.size(), 1U);
  EXPECT_TRUE(step.trace().saved.storage[0].valid());
  testing::expect_exact_in_every_style(step);
}

}  // namespace
}  // namespace stowage
