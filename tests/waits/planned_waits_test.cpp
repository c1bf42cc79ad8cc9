// The waits of a planned step, one test each, on a device whose copies happen at the last moment:
// without the wait the step is wrong or memory is freed under a copy. CMakeLists.txt builds this
// once more without each wait.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "executor/layer.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/support/schedule_parts.h"
#include "tests/waits/late_device.h"

namespace stowage {
namespace {

using executor::CopyLane;
using executor::OffPlan;
using executor::PlannedStep;
using simulator::CopyMode;
using simulator::ReleasePoint;
using simulator::ReloadPoint;
using simulator::SavedDecision;
using testing::backward;
using testing::expect_same;
using testing::hand_device;
using testing::HandStep;
using testing::LateDevice;
using testing::Outcome;
using testing::parameter;

// Each round saves its input (twice) and its result; one that is `changed` saves less.
at::Tensor rounds(at::Tensor hidden, bool changed = false) {
  for (int i = 0; i < 3; ++i) {
    hidden = (changed && i == 1 ? hidden.cos() : hidden * hidden).tanh();
  }
  return hidden;
}

SavedDecision at_once() {
  SavedDecision decision;
  decision.decision = simulator::Decision::offload;
  decision.release.kind = ReleasePoint::Kind::pack;
  decision.reload.kind = ReloadPoint::Kind::unpack;
  return decision;
}

// Released as late as can be, so that all copies are under way at once.
SavedDecision late() {
  SavedDecision decision = at_once();
  decision.release.lag = 1000;
  return decision;
}

// All reloads begin where backward enters this layer.
SavedDecision reloaded_at(const char* layer) {
  SavedDecision decision = at_once();
  decision.reload.kind = ReloadPoint::Kind::point;
  decision.reload.point.phase = simulator::ProgramPoint::Phase::backward;
  decision.reload.point.layer = layer;
  decision.reload.point.where = simulator::ProgramPoint::Where::begin;
  return decision;
}

// In PyTorch's allocator and in planned memory, where what is freed has another owner at once.
class PlannedWaits : public ::testing::TestWithParam<simulator::PlacementMode> {
 protected:
  // After the step was recorded.
  std::unique_ptr<PlannedStep> plan(const HandStep& step, const SavedDecision& decision,
                                    OffPlan off_plan = OffPlan::refuse) {
    device_ = std::make_unique<LateDevice>(hand_device());
    auto lowering = step.lower(testing::offload_made(step.trace(), decision));
    lowering.schedule.placement = GetParam();
    EXPECT_GT(testing::offloads_of(lowering.schedule).size(), 2U);
    // Poisoned host slots cannot be read again off plan.
    executor::PlannedStepOptions options;
    options.off_plan = off_plan;
    options.poison_host = off_plan == OffPlan::refuse;
    options.poison_device = true;
    auto made = PlannedStep::create(*device_, std::make_shared<const Trace>(step.trace()),
                                    lowering.schedule, {}, options);
    if (!made) throw std::runtime_error(made.error().text());
    return std::move(made).value();
  }

  HandStep one_layer() {
    return HandStep({p_}, {}, [this] {
      return backward(layer("layer", [](const auto& in) { return rounds(in[0]); }, {p_ * 2}).sum());
    });
  }

  HandStep may_change() {
    return HandStep({p_}, {}, [this] { return backward(rounds(p_ * 2, changed_).sum()); });
  }

  const at::Tensor p_ = parameter({16, 16});
  const at::Tensor q_ = parameter({16, 16});
  bool changed_ = false;
  std::unique_ptr<LateDevice> device_;
};

// The storage is given up after its copy.
TEST_P(PlannedWaits, Release) {
  HandStep step = one_layer();
  const auto plan = this->plan(step, at_once());
  const Outcome reference = step.plain(0);
  expect_same(step.planned(*plan, 0), reference);
  EXPECT_EQ(device_->freed_under_copy(), 0);
}

// The reload buffer is used after its copy.
TEST_P(PlannedWaits, Await) {
  HandStep step = one_layer();
  const auto plan = this->plan(step, at_once());
  const Outcome reference = step.plain(0);
  expect_same(step.planned(*plan, 0), reference);
}

// A step that leaves its plan in forward gives up the storages whose copies are under way.
TEST_P(PlannedWaits, LeavePlanWithOffloads) {
  HandStep step = may_change();
  const auto plan = this->plan(step, late(), OffPlan::offload_all);
  changed_ = true;
  const Outcome reference = step.plain(0);
  const Outcome outcome = step.planned(*plan, 0);
  expect_same(outcome, reference);
  EXPECT_FALSE(outcome.report.on_plan);
  EXPECT_EQ(device_->freed_under_copy(), 0);
}

// One that leaves it in backward gives up the reload buffers, some of which nobody has awaited.
TEST_P(PlannedWaits, LeavePlanWithReloads) {
  HandStep step({p_, q_}, {}, [this] {
    const auto graph = [](const char* name, const at::Tensor& p) {
      return layer(name, [](const auto& in) { return rounds(in[0]); }, {p * 2}).sum();
    };
    const at::Tensor a = graph("a", p_);
    const at::Tensor b = graph("b", q_);
    a.backward({}, /*retain_graph=*/true);
    if (changed_) a.backward({}, /*retain_graph=*/true);
    return backward(b);
  });
  const auto plan = this->plan(step, reloaded_at("a"), OffPlan::offload_all);
  changed_ = true;
  const Outcome reference = step.plain(0);
  const Outcome outcome = step.planned(*plan, 0);
  expect_same(outcome, reference);
  EXPECT_FALSE(outcome.report.on_plan);
  EXPECT_EQ(device_->freed_under_copy(), 0);
}

// A saved tensor that is used off plan comes back first.
TEST_P(PlannedWaits, LoadOffPlan) {
  HandStep step = may_change();
  const auto plan = this->plan(step, at_once(), OffPlan::offload_all);
  changed_ = true;
  const Outcome reference = step.plain(0);
  const Outcome outcome = step.planned(*plan, 0);
  expect_same(outcome, reference);
  EXPECT_FALSE(outcome.report.on_plan);
}

// A step that is given up drops nothing that is being copied.
TEST_P(PlannedWaits, DropAll) {
  HandStep step = one_layer();
  const auto plan = this->plan(step, late());
  plan->begin_step();
  at::Tensor unfinished = layer("layer", [](const auto& in) { return rounds(in[0]); }, {p_ * 2});
  unfinished.reset();
  plan->abort_step();
  EXPECT_GT(device_->most_under_way(CopyLane::d2h), 0U);
  EXPECT_EQ(device_->freed_under_copy(), 0);
}

// `blocking` means that the CPU waits for each copy: never are two under way.
TEST_P(PlannedWaits, BlockingOffload) {
  HandStep step = one_layer();
  SavedDecision decision = late();
  decision.copy_out = CopyMode::blocking;
  const auto plan = this->plan(step, decision);
  const Outcome reference = step.plain(0);
  expect_same(step.planned(*plan, 0), reference);
  EXPECT_EQ(device_->most_under_way(CopyLane::d2h), 1U);
}

TEST_P(PlannedWaits, BlockingReload) {
  HandStep step = one_layer();
  SavedDecision decision = reloaded_at("layer");
  decision.copy_in = CopyMode::blocking;
  const auto plan = this->plan(step, decision);
  const Outcome reference = step.plain(0);
  expect_same(step.planned(*plan, 0), reference);
  EXPECT_EQ(device_->most_under_way(CopyLane::h2d), 1U);
}

// Without `blocking` the same plans have several copies under way: the tests above can fail.
TEST_P(PlannedWaits, LanesHoldSeveralCopies) {
  HandStep step = one_layer();
  const Outcome reference = step.plain(0);
  expect_same(step.planned(*plan(step, late()), 0), reference);
  EXPECT_GT(device_->most_under_way(CopyLane::d2h), 1U);
  expect_same(step.planned(*plan(step, reloaded_at("layer")), 0), reference);
  EXPECT_GT(device_->most_under_way(CopyLane::h2d), 1U);
}

INSTANTIATE_TEST_SUITE_P(Cached, PlannedWaits,
                         ::testing::Values(simulator::PlacementMode::caching));
INSTANTIATE_TEST_SUITE_P(Placed, PlannedWaits,
                         ::testing::Values(simulator::PlacementMode::planned));

}  // namespace
}  // namespace stowage
