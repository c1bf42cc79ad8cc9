// planner/checkpoint_schedule.h: the programme by hand and against all sets, the schedule against
// all sets on steps that are replayed.
#include "planner/checkpoint_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "planner/budget.h"
#include "planner/planner.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/support/random_chain.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

using ::testing::HasSubstr;

// Three layers, 40, 30 and 20 bytes each, of work 5, 2 and 4. Their peaks with nothing freed are
// 50, 80 and 100, and 90 is there behind the last.
std::vector<ChainLayer> three_layers() {
  return {{5, 40, 0, 50, 50}, {2, 30, 0, 80, 80}, {4, 20, 0, 100, 100}};
}

TEST(LeastWork, ByHand) {
  using Chosen = std::vector<bool>;
  EXPECT_EQ(least_work(three_layers(), 90, 100), (Chosen{false, false, false}));
  // 20 must be gone at the last layer: the second one's 30 take the least work.
  EXPECT_EQ(least_work(three_layers(), 90, 80), (Chosen{false, true, false}));
  // At the second layer 10, 20 must be gone, which the first alone frees; that is enough behind it.
  EXPECT_EQ(least_work(three_layers(), 90, 70), (Chosen{true, false, false}));
  EXPECT_EQ(least_work(three_layers(), 90, 60), (Chosen{true, false, false}));
  // 30 at the second, 50 at the last one.
  EXPECT_EQ(least_work(three_layers(), 90, 50), (Chosen{true, true, false}));
  EXPECT_EQ(least_work(three_layers(), 90, 49), std::nullopt);
}

TEST(LeastWork, CountsWhatTwoInARowHold) {
  std::vector<ChainLayer> layers = three_layers();
  layers[1].freed_with = -25;  // both free 45
  layers[2].work = 1;
  layers[2].peak_kept = 110;
  // 60 must be gone at the last layer.
  EXPECT_EQ(least_work(layers, 90, 50), std::nullopt);
  layers[1].freed_with = -10;
  EXPECT_EQ(least_work(layers, 90, 50), (std::vector<bool>{true, true, false}));
}

TEST(LeastWork, IsThatOfAllSets) {
  std::mt19937_64 random(7);
  const auto drawn = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)) + 1;
  };
  int found = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<ChainLayer> layers(9);
    Bytes held = 0;
    for (ChainLayer& layer : layers) {
      layer.work = drawn(30);
      layer.freed = drawn(50);
      layer.freed_with = random() % 3 == 0 ? -drawn(layer.freed) : 0;
      held += layer.freed;
      layer.peak_kept = held + drawn(40);
      layer.peak_again = layer.peak_kept + drawn(20) - 10;
    }
    const Bytes behind = held;
    const Bytes budget = held * drawn(9) / 10;
    std::optional<Nanoseconds> best;
    const auto work_of = [&](auto is_chosen) -> std::optional<Nanoseconds> {
      Bytes freed = 0;
      Nanoseconds work = 0;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        const ChainLayer& layer = layers[i];
        if ((is_chosen(i) ? layer.peak_again : layer.peak_kept) - freed > budget) return {};
        if (!is_chosen(i)) continue;
        freed += layer.freed + (i > 0 && is_chosen(i - 1) ? layer.freed_with : 0);
        work += layer.work;
      }
      return behind - freed > budget ? std::nullopt : std::optional(work);
    };
    for (unsigned set = 0; set < 512; ++set) {
      const auto work = work_of([&](std::size_t i) { return (set >> i & 1U) != 0; });
      if (work && (!best || *work < *best)) best = work;
    }
    const auto chosen = least_work(layers, behind, budget);
    ASSERT_EQ(chosen.has_value(), best.has_value()) << round;
    if (!chosen) continue;
    ++found;
    EXPECT_EQ(work_of([&](std::size_t i) { return (*chosen)[i]; }), best) << round;
  }
  EXPECT_GT(found, 100);
}

// Every set of these layers, replayed: peak of the counter, step.
std::vector<std::pair<Bytes, Nanoseconds>> all_sets(const Trace& trace,
                                                    const std::vector<std::string>& layers,
                                                    simulator::PeakKind on) {
  std::vector<std::pair<Bytes, Nanoseconds>> sets;
  for (unsigned set = 0; set < 1U << layers.size(); ++set) {
    simulator::Structure structure;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if ((set >> i & 1U) != 0) structure.recompute.push_back(layers[i]);
    }
    const auto step = simulator::unroll(trace, structure);
    if (!step) return {};
    const simulator::StepIndex index(*step);
    const auto result =
        simulator::replay(index, simulator::lower(index, simulator::Plan())->schedule);
    sets.emplace_back(peak_of(result, on), result.step_ns);
  }
  return sets;
}

std::vector<std::string> six_layers() {
  std::vector<std::string> layers;
  for (int i = 0; i < 6; ++i) layers.push_back("layers." + std::to_string(i));
  return layers;
}

// How the schedule compares with the best of all sets, over budgets.
struct Compared {
  int budgets = 0;   // that some set keeps
  int best = 0;      // of them: it is the best set
  int missed = 0;    // none was found
  double worst = 1;  // its step over the best one

  void add(const Trace& trace, simulator::PeakKind on) {
    const simulator::StepIndex index(trace);
    const auto sets = all_sets(trace, six_layers(), on);
    ASSERT_FALSE(sets.empty());
    for (const int percent : {95, 90, 80, 70, 60}) {
      PlanRequest request;
      request.policy = "checkpoint:schedule=optimal";
      request.budget = sets.front().first * percent / 100;
      request.budget_on = on;
      std::optional<Nanoseconds> shortest;
      for (const auto& [peak, step] : sets) {
        if (peak <= *request.budget && (!shortest || step < *shortest)) shortest = step;
      }
      const auto outcome = make_plan(index, request);
      ASSERT_TRUE(outcome.ok()) << outcome.error().text();
      if (!shortest) {
        EXPECT_EQ(outcome->kind, PlanKind::policy_over_budget);
        continue;
      }
      ++budgets;
      if (outcome->kind != PlanKind::planned) {
        ++missed;
        continue;
      }
      EXPECT_LE(peak_of(outcome->predicted, on), *request.budget);
      EXPECT_GE(outcome->predicted.step_ns, *shortest);
      if (outcome->predicted.step_ns == *shortest) ++best;
      worst = std::max(
          worst, static_cast<double>(outcome->predicted.step_ns) / static_cast<double>(*shortest));
    }
  }
};

// Layers of several sizes.
TEST(CheckpointSchedule, IsTheBestOfAllSets) {
  Compared compared;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    compared.add(testing::random_chain(random, 6), simulator::PeakKind::requested);
  }
  EXPECT_GT(compared.budgets, 150);
  EXPECT_EQ(compared.missed, 0);
  EXPECT_EQ(compared.best, compared.budgets) << compared.worst;
}

TEST(CheckpointSchedule, OfARecordedStepIsTheBestOfAllSets) {
  const auto read = load_trace(std::string(STOWAGE_SOURCE_DIR) +
                               "/traces/samples/mlp-l6-fp32-h200.trace.json.gz");
  ASSERT_TRUE(read.ok());
  Compared compared;
  compared.add(read->trace, simulator::PeakKind::active);
  EXPECT_EQ(compared.budgets, 5);
  EXPECT_EQ(compared.missed, 0);
  EXPECT_EQ(compared.best, compared.budgets) << compared.worst;
}

TEST(CheckpointSchedule, NeedsABudgetAndNoOtherChoice) {
  std::mt19937_64 random(1);
  const Trace trace = testing::random_chain(random, 6);
  const simulator::StepIndex index(trace);
  const auto error_of = [&](const char* spec) { return policy_rules(index, spec).error(); };
  EXPECT_EQ(error_of("checkpoint:schedule=optimal").code, ErrorCode::usage);
  EXPECT_THAT(error_of("checkpoint:schedule=optimal").message, HasSubstr("needs a budget"));
  EXPECT_EQ(error_of("checkpoint:schedule=best").code, ErrorCode::usage);
  EXPECT_EQ(error_of("checkpoint:").message, "policy 'checkpoint:' names no option");
  EXPECT_EQ(error_of("checkpoint:schedule=optimal,run=sqrt").code, ErrorCode::usage);
  EXPECT_EQ(error_of("checkpoint:schedule=optimal,every=2").code, ErrorCode::usage);
}

}  // namespace
}  // namespace stowage::planner
