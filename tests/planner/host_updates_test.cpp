// Updates on the host in what `auto` answers, and in its bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "planner/mixed_bound.h"
#include "planner/planner.h"
#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/support/all_on_host.h"
#include "tests/support/micro_trace.h"

namespace stowage::planner {
namespace {

using simulator::StatePlace;
using simulator::StepIndex;

bool is_on_host(const simulator::Plan& plan) {
  return std::any_of(plan.optimizer.begin(), plan.optimizer.end(),
                     [](const auto& rule) { return rule.state == StatePlace::host; });
}

PlanOutcome answer_of(const StepIndex& index, Bytes budget, bool optimizer = true) {
  PlanRequest request;
  request.budget = budget;
  request.budget_on = simulator::PeakKind::requested;
  request.allowed.optimizer = optimizer;
  auto outcome = make_plan(index, request);
  EXPECT_TRUE(outcome.ok()) << (outcome ? "" : outcome.error().text());
  return std::move(outcome).value();
}

testing::RandomTraceOptions step_options(std::uint64_t seed) {
  testing::RandomTraceOptions options;
  options.ops = 4 + static_cast<int>(seed % 8);
  options.parameters = true;
  options.several_weights = seed % 3 == 0;
  options.device_times = seed % 4 == 0;
  options.updates_in_backward = seed % 5 == 2;
  return options;
}

// Of a step that the host updates the parameters of: tight curves are what the replay counts, no
// schedule has hazards, and no plan is below the floor or the bound.
TEST(HostUpdateBounds, HoldForPlans) {
  int steps = 0;
  int plans = 0;
  int close = 0;
  int tight = 0;
  int above = 0;
  for (std::uint64_t seed = 1; seed <= 240; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = testing::random_trace(seed, step_options(seed));
    const StepIndex recorded(trace);
    const simulator::Structure structure = testing::all_on_host(recorded);
    if (structure.host_updates.empty()) continue;
    ++steps;
    const auto step = simulator::unroll(trace, structure);
    ASSERT_TRUE(step.ok()) << step.error().text();
    const StepIndex index(*step);
    const Footprints footprints(index);
    const MemoryFloor floor = memory_floor(footprints);
    Bytes rows = 0;
    for (const FloorStorage& each : floor.storages) rows += each.bytes;
    ASSERT_EQ(rows, floor.bytes);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 12; ++round) {
      std::vector<Choice> choices;
      for (const Movable& movable : footprints.movable()) {
        const auto choice = static_cast<Choice>(random() % kChoices);
        const bool can = round > 0 && movable.allows(choice);
        choices.push_back(can ? choice : Choice::keep);
      }
      const std::vector<Bytes> curve = footprints.curve(choices);
      const Bytes most = *std::max_element(curve.begin(), curve.end());
      if (round == 0) {
        ASSERT_EQ(curve, footprints.resident());
      }
      for (const bool is_tight : {true, false}) {
        simulator::Decisions decisions = footprints.tight(choices);
        if (!is_tight) {
          decisions = footprints.decisions(choices, {}, {});
          if (round % 3 > 0) decisions.budget = most + most / 5;
        }
        const auto lowered = simulator::lower(index, decisions);
        ASSERT_TRUE(lowered.ok()) << lowered.error().text();
        for (const auto& hazard : simulator::find_hazards(index, lowered->schedule)) {
          FAIL() << hazard.text << " in round " << round;
        }
        const auto result = simulator::replay(index, lowered->schedule);
        if (is_tight) {
          ASSERT_GE(result.peak_requested, most);
          ++tight;
          above += result.peak_requested > most ? 1 : 0;
        }
        ASSERT_LE(floor.bytes, result.peak_requested);
        const Nanoseconds bound = shortest_step(footprints, result.peak_requested);
        ASSERT_LE(bound, result.step_ns) << "round " << round;
        ++plans;
        close += result.step_ns - bound <= bound / 10 ? 1 : 0;
      }
    }
  }
  std::cout << plans << " plans of " << steps << " steps, " << close
            << " within 10 % of the bound; " << above << " of " << tight << " above their curve\n";
  EXPECT_GT(steps, 60);
  // A gradient that is stored at an unpack counts until the next event; nothing asks for its bytes
  // there, so it may go later.
  EXPECT_LT(above, tight / 50);
  EXPECT_GT(close, plans / 20);
}

// Whatever part of the updates the host does, no plan is below the bound of mixes.
TEST(HostUpdateBounds, HoldForMixes) {
  int plans = 0;
  int mixes = 0;
  int close = 0;
  int above_resident = 0;
  for (std::uint64_t seed = 1; seed <= 240; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = testing::random_trace(seed, step_options(seed));
    const StepIndex recorded(trace);
    const std::vector<StorageId> may = testing::all_on_host(recorded).host_updates;
    if (may.empty()) continue;
    const Footprints on_device(recorded);
    const MixedBound mixed(recorded, may);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 8; ++round) {
      simulator::Structure structure;
      for (const StorageId parameter : may) {
        if (random() % 2 == 0) structure.host_updates.push_back(parameter);
      }
      const auto step = simulator::unroll(trace, structure);
      ASSERT_TRUE(step.ok()) << step.error().text();
      const StepIndex index(*step);
      const Footprints footprints(index);
      std::vector<Choice> choices;
      for (const Movable& movable : footprints.movable()) {
        const auto choice = static_cast<Choice>(random() % kChoices);
        choices.push_back(movable.allows(choice) ? choice : Choice::keep);
      }
      simulator::Decisions decisions = footprints.tight(choices);
      if (round % 2 > 0) {
        const std::vector<Bytes> curve = footprints.curve(choices);
        decisions = footprints.decisions(choices, {}, {});
        decisions.budget = *std::max_element(curve.begin(), curve.end()) * 6 / 5;
      }
      const auto lowered = simulator::lower(index, decisions);
      ASSERT_TRUE(lowered.ok()) << lowered.error().text();
      const auto result = simulator::replay(index, lowered->schedule);
      const Nanoseconds bound = mixed.shortest_step(
          [&](Bytes within) {
            return shortest_step(on_device, within, kAllPositions, mixed.updates());
          },
          result.peak_requested, result.step_ns * 2);
      ASSERT_LE(bound, result.step_ns) << "round " << round;
      ++plans;
      const std::size_t count = structure.host_updates.size();
      mixes += count > 0 && count < may.size() ? 1 : 0;
      close += result.step_ns - bound <= bound / 5 ? 1 : 0;
      above_resident += bound > recorded.resident_time().back() ? 1 : 0;
    }
  }
  std::cout << plans << " plans, " << mixes << " of them mixes, " << close
            << " within 20 % of the bound, which is above the step without a plan for "
            << above_resident << "\n";
  EXPECT_GT(mixes, 100);
  EXPECT_GT(close, plans / 20);
  EXPECT_GT(above_resident, 10);
}

// No answer is lost, floor and bound are no higher, and what is predicted is what
// the plan gives, read back.
TEST(HostUpdatesInPlans, LoseNoAnswer) {
  int compared = 0, faster = 0, more = 0, used = 0;
  for (std::uint64_t seed = 1; seed <= 14; ++seed) {
    const Trace trace = testing::random_trace(seed, step_options(seed));
    const StepIndex index(trace);
    if (testing::all_on_host(index).host_updates.empty()) continue;
    const Bytes resident =
        simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
    for (const int percent : {95, 85, 75, 65, 55}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " " + std::to_string(percent) + " %");
      const PlanOutcome with = answer_of(index, resident * percent / 100);
      const PlanOutcome without = answer_of(index, resident * percent / 100, false);
      ++compared;
      EXPECT_FALSE(is_on_host(without.plan));
      EXPECT_LE(with.floor.bytes, without.floor.bytes);
      EXPECT_LE(with.kept_from, without.kept_from);
      if (!with.feasible()) {
        EXPECT_FALSE(without.feasible());
        continue;
      }
      EXPECT_LE(with.lower_bound_step, with.predicted.step_ns);
      EXPECT_LE(with.predicted.peak_requested, resident * percent / 100);
      if (is_on_host(with.plan)) {
        ++used;
        const auto step = simulator::unroll(trace, with.plan);
        ASSERT_TRUE(step.ok()) << step.error().text();
        const StepIndex planned_index(*step);
        const auto lowered = simulator::lower(planned_index, with.plan);
        ASSERT_TRUE(lowered.ok()) << lowered.error().text();
        EXPECT_EQ(simulator::replay(planned_index, lowered->schedule).step_ns,
                  with.predicted.step_ns);
      }
      if (!without.feasible()) {
        ++more;
        continue;
      }
      // Without any decision about the optimizer the search goes another way.
      EXPECT_LE(with.predicted.step_ns, without.predicted.step_ns * 102 / 100);
      faster += with.predicted.step_ns < without.predicted.step_ns ? 1 : 0;
    }
  }
  std::cout << "of " << compared << " budgets " << more << " more are kept, " << faster
            << " are kept faster, " << used << " with updates on the host\n";
  EXPECT_GT(more, 5);
  EXPECT_GT(faster, 5);
  EXPECT_GT(used, 5);
}

// A layer of 1 MiB of weights with 2 MiB of state and a gradient, on a link of 1 GB/s; the host
// updates it in 4 ms. Another layer takes 10 ms in forward, with 8 MiB for as long, and `behind` in
// backward once the gradient is there.
constexpr Bytes kMib = Bytes{1} << 20;
Trace one_layer(Nanoseconds update, Nanoseconds behind, std::int64_t link = 1'000'000'000) {
  testing::MicroTrace t;
  t.link().d2h = t.link().h2d = testing::flat_link(link);
  const StorageId weights = t.existing(kMib);
  t.state_of(weights, 2 * kMib);
  t.free(t.gradient_before(weights));
  t.begin_layer("net.a");
  t.begin_op();
  const StorageId some = t.alloc(8 * kMib);
  t.run(10'000'000).end_op();
  t.free(some);
  t.end_layer("net.a");
  t.begin_layer("net.b");
  t.begin_op();
  t.read(weights);
  t.run(5'000'000).end_op();
  t.end_layer("net.b");
  t.backward();
  t.begin_layer_backward("net.b");
  t.begin_op();
  t.read(weights);
  t.make_gradient(weights);
  t.run(5'000'000).end_op();
  t.accumulate(weights);
  t.end_layer_backward("net.b");
  t.begin_layer_backward("net.a");
  t.begin_op();
  t.run(behind).end_op();
  t.end_layer_backward("net.a");
  t.optimizer();
  t.update(weights, update);
  return t.finish();
}

// Within 9 MiB the weights or the state are away beside the 8 MiB. Beside 20 ms of backward the
// host's millisecond, 4 ms and the weights' millisecond hide: the step takes what the layers
// compute, and no update.
TEST(HostUpdatesInPlans, WinWhereTheyHide) {
  const Trace trace = one_layer(1'000'000, 20'000'000);
  const StepIndex index(trace);
  const PlanOutcome with = answer_of(index, 9 * kMib);
  ASSERT_EQ(with.kind, PlanKind::planned);
  EXPECT_TRUE(is_on_host(with.plan));
  EXPECT_EQ(with.predicted.step_ns, 40'000'000);
  EXPECT_EQ(with.lower_bound_step, 40'000'000);
  EXPECT_EQ(with.predicted.host_update_ns, 4'000'000);
  const PlanOutcome without = answer_of(index, 9 * kMib, false);
  EXPECT_GE(without.predicted.step_ns, 41'000'000);
}

// A step that fits stays as it is; the bound is of what the host could do all the same.
TEST(HostUpdatesInPlans, AreInTheBoundOfAStepThatFits) {
  const Trace trace = one_layer(1'000'000, 20'000'000);
  const PlanOutcome fits = answer_of(StepIndex(trace), 64 * kMib);
  EXPECT_EQ(fits.kind, PlanKind::fits_already);
  EXPECT_EQ(fits.predicted.step_ns, 41'000'000);
  EXPECT_EQ(fits.lower_bound_step, 40'000'000);
}

// The device's update needs weights, gradient and state at once, 4 MiB; the host's none of them.
TEST(HostUpdatesInPlans, WinWhereTheStateHasNoRoom) {
  testing::MicroTrace t;
  const StorageId weights = t.existing(kMib);
  t.state_of(weights, 2 * kMib);
  t.free(t.gradient_before(weights));
  t.begin_layer("net");
  t.begin_op();
  t.read(weights);
  t.run(5'000'000).end_op();
  t.end_layer("net");
  t.backward();
  t.begin_layer_backward("net");
  t.begin_op();
  t.read(weights);
  t.make_gradient(weights);
  t.run(5'000'000).end_op();
  t.accumulate(weights);
  t.end_layer_backward("net");
  t.optimizer();
  t.update(weights, 1'000'000);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  // Weights and gradient are there at once in backward; on the device the state is with them.
  const PlanOutcome with = answer_of(index, 2 * kMib);
  ASSERT_EQ(with.kind, PlanKind::planned);
  EXPECT_TRUE(is_on_host(with.plan));
  EXPECT_EQ(with.floor.bytes, 2 * kMib);
  const Footprints on_device(index);
  EXPECT_EQ(memory_floor(on_device).bytes, 4 * kMib);
  EXPECT_FALSE(answer_of(index, 2 * kMib, false).feasible());
}

// Nothing is behind the gradient, and the link is fast: the host's 4 ms show, the device's update
// takes no time, and the state streams beside what the layers compute.
TEST(HostUpdatesInPlans, LoseWhereTheLinkIsFast) {
  const Trace trace = one_layer(0, 0, 1'000'000'000'000);
  const StepIndex index(trace);
  const PlanOutcome with = answer_of(index, 9 * kMib);
  ASSERT_EQ(with.kind, PlanKind::planned);
  EXPECT_FALSE(is_on_host(with.plan));
  EXPECT_LT(with.predicted.step_ns, 20'100'000);
}

// Two layers of 1 MiB of weights and 2 MiB of state on a link of 1 GB/s, and another one that takes
// 8 MiB for 10 ms ahead of them. Within 9 MiB both states are away meanwhile. Forward and backward
// take 30 ms. On the device the updates end at 31 and 32 ms, and what the last one wrote is at home
// 2.1 ms behind that at least, with the other layer's: 35.2 ms. The host gets a's gradient at 31 ms
// and is done at 35. But b's it gets at 26 ms, and is done at 30: then the device updates a alone,
// by 31 ms, and its state is at home 2.1 ms later.
TEST(HostUpdatesInPlans, DoAPartWhereTheLinkDoesTheOthers) {
  testing::MicroTrace t;
  t.link().d2h = t.link().h2d = testing::flat_link(1'000'000'000);
  std::vector<StorageId> weights;
  for (int i = 0; i < 2; ++i) {
    weights.push_back(t.existing(kMib));
    t.state_of(weights.back(), 2 * kMib);
  }
  for (const StorageId each : weights) t.free(t.gradient_before(each));
  const std::vector<std::string> names = {"net.a", "net.b"};
  t.begin_layer("net.c");
  t.begin_op();
  const StorageId some = t.alloc(8 * kMib);
  t.run(10'000'000).end_op();
  t.free(some);
  t.end_layer("net.c");
  for (const std::size_t i : {0, 1}) {
    t.begin_layer(names[i]);
    t.begin_op();
    t.read(weights[i]);
    t.run(5'000'000).end_op();
    t.end_layer(names[i]);
  }
  t.backward();
  for (const std::size_t i : {1, 0}) {
    t.begin_layer_backward(names[i]);
    t.begin_op();
    t.read(weights[i]);
    t.make_gradient(weights[i]);
    t.run(5'000'000).end_op();
    t.accumulate(weights[i]);
    t.end_layer_backward(names[i]);
  }
  t.optimizer();
  for (const std::size_t i : {1, 0}) t.update(weights[i], 1'000'000);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const PlanOutcome outcome = answer_of(index, 9 * kMib);
  ASSERT_EQ(outcome.kind, PlanKind::planned);
  const auto decisions = simulator::resolve_optimizer(trace, outcome.plan.optimizer);
  ASSERT_TRUE(decisions.ok());
  ASSERT_FALSE(decisions->updated_on_host.empty());
  EXPECT_FALSE(decisions->updated_on_host[weights[0].index()]);
  EXPECT_TRUE(decisions->updated_on_host[weights[1].index()]);
  EXPECT_EQ(outcome.predicted.step_ns, 31'000'000 + 2 * kMib);  // a byte a nanosecond
  EXPECT_EQ(outcome.predicted.host_update_ns, 4'000'000);
  EXPECT_LE(outcome.lower_bound_step, outcome.predicted.step_ns);
  EXPECT_GE(outcome.lower_bound_step, 30'000'000);
}

// The weights, the state and the gradient are 4 MiB.
TEST(HostUpdatesInPlans, StayWithinTheHostsBudget) {
  const Trace trace = one_layer(1'000'000, 20'000'000);
  const StepIndex index(trace);
  for (const Bytes host : {4 * kMib, 4 * kMib - 1}) {
    PlanRequest request;
    request.budget = 9 * kMib;
    request.budget_on = simulator::PeakKind::requested;
    request.host_budget = host;
    const auto outcome = make_plan(index, request);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->kind, PlanKind::planned);
    EXPECT_EQ(is_on_host(outcome->plan), host == 4 * kMib);
    EXPECT_LE(outcome->predicted.host_bytes, host);
  }
}

// What cannot update on the host nobody need hear of.
TEST(HostUpdatesInPlans, AreNotSpokenOfWhereThereAreNone) {
  const Trace trace = testing::two_offloadable(400, 800);
  const StepIndex index(trace);
  EXPECT_EQ(answer_of(index, 100, false).allowed.text(), "");
}

// What a plan may say it may pin: gradients of updates in backward are there where the host does
// these, for which they leave in any case. Where it does not there are none to speak of.
TEST(HostUpdatePins, AboutGradientsOfUpdatesInBackwardGoWithTheUpdates) {
  testing::MicroTrace t;
  const StorageId w = t.existing(Bytes{1} << 20);
  t.state_of(w, Bytes{1} << 20);
  t.begin_layer("L");
  t.begin_op();
  t.read(w);
  t.run(2'000'000).end_op();
  t.end_layer("L");
  t.backward();
  t.begin_layer_backward("L");
  t.begin_op();
  t.read(w);
  const StorageId gradient = t.make_gradient(w);
  t.run(3'000'000).end_op();
  t.accumulate(w);
  t.update(w, 100);
  t.free(gradient);
  t.end_layer_backward("L");
  const Trace trace = t.finish();
  const StepIndex index(trace);
  PlanRequest request;
  request.budget = Bytes{3} << 20;
  request.budget_on = simulator::PeakKind::requested;
  request.pins.gradients = {{"*", simulator::GradientPlace::host}};
  EXPECT_FALSE(make_plan(index, request).ok());
  request.pins.optimizer = {{"*", StatePlace::host}};
  const auto outcome = make_plan(index, request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_GT(outcome->predicted.host_update_ns, 0);
  request.pins.gradients = {{"M", simulator::GradientPlace::host}};
  EXPECT_FALSE(make_plan(index, request).ok());
}

}  // namespace
}  // namespace stowage::planner
