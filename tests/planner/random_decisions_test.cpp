// planner/bounds against decisions drawn from the whole space, and not from the tables of the
// planner: any share of the saved tensors, each with points, copy modes and sharing of its own,
// parameters in random shards. What a replay of them keeps and takes, neither bound is above.
//
// STOWAGE_RANDOM_CASES (100) says how many, of three plans each; the seed of a case that fails is
// printed, and STOWAGE_RANDOM_SEED begins there. `ctest -C full -L full` runs 3000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/bounds.h"
#include "planner/footprint.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"
#include "tests/support/random_modes.h"

namespace stowage::planner {
namespace {

using simulator::CopyMode;
using simulator::Decisions;
using simulator::StepIndex;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

testing::RandomTraceOptions random_options(std::mt19937_64& random) {
  testing::RandomTraceOptions options;
  options.ops = 2 + static_cast<int>(random() % (random() % 2 == 0 ? 4 : 30));
  options.device_times = random() % 3 == 0;
  options.parameters = random() % 2 == 0;
  options.several_weights = random() % 4 == 0;
  options.setup = random() % 5 == 0;
  return options;
}

// The one plan that shortest_step() excludes: `lane` and `compute` copies of one direction overlap
// in the latency of a link. There all of them go one way.
void do_not_mix(const Calibration& link, Decisions& decisions, std::mt19937_64& random) {
  const auto one_of = [&] { return random() % 2 == 0 ? CopyMode::lane : CopyMode::compute; };
  const auto unify = [&](const LinkCurve& curve, CopyMode simulator::SavedDecision::*mode) {
    if (curve.latency == 0) return;
    const CopyMode all = decisions.parameters.shard_of.empty() ? one_of() : CopyMode::lane;
    for (simulator::SavedDecision& row : decisions.saved) {
      if (row.*mode != CopyMode::blocking || all == CopyMode::compute) row.*mode = all;
    }
  };
  unify(link.d2h, &simulator::SavedDecision::copy_out);
  unify(link.h2d, &simulator::SavedDecision::copy_in);
}

// Any layers, in any shards, as a plan can name them.
simulator::ParameterDecisions random_shards(const Trace& trace, std::mt19937_64& random) {
  simulator::ParameterPlan parameters;
  parameters.shards.resize(1 + random() % 5);
  parameters.stream = testing::random_modes(parameters.shards.size(), random());
  if (random() % 2 == 0) parameters.prefetch = static_cast<std::int32_t>(random() % 4);
  std::vector<bool> has(trace.layers.size(), false);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::parameter) continue;
    for (LayerId at = trace.storages.layer[s]; at.valid(); at = trace.layers.parent[at.index()]) {
      has[at.index()] = true;
    }
  }
  const std::uint64_t share = random() % 101;
  for (std::size_t l = 1; l < trace.layers.size(); ++l) {
    if (!has[l] || random() % 100 >= share) continue;
    auto& shard = parameters.shards[random() % parameters.shards.size()];
    shard.push_back(trace.string(trace.layers.name[l]));
  }
  std::erase_if(parameters.shards, [](const auto& shard) { return shard.empty(); });
  simulator::Plan plan;
  plan.parameters = std::move(parameters);
  const auto decisions = simulator::resolve(trace, plan);
  EXPECT_TRUE(decisions.ok()) << decisions.error().text();
  return decisions.ok() ? decisions->parameters : simulator::ParameterDecisions{};
}

// The state of any layers, likewise.
simulator::OptimizerDecisions random_state(const Trace& trace, std::mt19937_64& random) {
  std::vector<bool> has(trace.layers.size(), false);
  for (const LayerId layer : simulator::layers_of_optimizer_state(trace)) {
    for (LayerId at = layer; at.valid(); at = trace.layers.parent[at.index()]) {
      has[at.index()] = true;
    }
  }
  simulator::Plan plan;
  const std::uint64_t share = random() % 101;
  for (std::size_t l = 1; l < trace.layers.size(); ++l) {
    if (!has[l] || random() % 100 >= share) continue;
    const bool streams = random() % 4 != 0;
    plan.optimizer.push_back(
        {trace.string(trace.layers.name[l]),
         streams ? simulator::StatePlace::stream : simulator::StatePlace::device});
  }
  const auto decisions = simulator::resolve(trace, plan);
  EXPECT_TRUE(decisions.ok()) << decisions.error().text();
  return decisions.ok() ? decisions->optimizer : simulator::OptimizerDecisions{};
}

simulator::GradientDecisions random_gradients(const Trace& trace, std::mt19937_64& random) {
  simulator::GradientDecisions decisions;
  const std::uint64_t share = random() % 101;
  for (const LayerId layer : simulator::layers_of_gradients(trace)) {
    const bool has_layer = layer.valid() && layer.index() > 0;  // row 0 is the step
    decisions.at_home.push_back(has_layer && random() % 100 < share);
  }
  return decisions;
}

Decisions draw(const Trace& trace, std::uint64_t seed, bool streams, std::mt19937_64& random) {
  Decisions decisions = testing::random_decisions(trace, seed);
  if (streams) decisions.parameters = random_shards(trace, random);
  if (streams) decisions.optimizer = random_state(trace, random);
  if (streams) decisions.gradients = random_gradients(trace, random);
  // From few tensors that leave to all of them.
  const std::uint64_t kept = random() % 101;
  const bool all = random() % 4 == 0;
  // Those that come near the bounds: copies beside compute where the lowering puts them, or at
  // once.
  const std::uint64_t style = random() % 3;
  if (style == 1) decisions.budget = 0;
  for (simulator::SavedDecision& row : decisions.saved) {
    if (style > 0) {
      row.copy_out = row.copy_in = CopyMode::lane;
      row.share = true;
      row.release = {};
      row.reload = {};
    }
    if (all) row.decision = simulator::Decision::offload;
    if (!all && random() % 100 < kept) row.decision = simulator::Decision::keep;
  }
  do_not_mix(trace.calibration, decisions, random);
  return decisions;
}

TEST(RandomDecisions, NoneIsBelowTheFloorOrFasterThanTheBound) {
  const std::uint64_t first = number_of("STOWAGE_RANDOM_SEED", 1);
  const std::uint64_t cases = number_of("STOWAGE_RANDOM_CASES", 100);
  std::cout << "seeds " << first << " to " << first + cases - 1 << "\n";
  std::uint64_t moved = 0;
  std::uint64_t lower = 0;  // than the step in which nothing moves
  std::uint64_t bounded = 0;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    SCOPED_TRACE("STOWAGE_RANDOM_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed * 7919);
    const testing::RandomTraceOptions options = random_options(random);
    const Trace trace = testing::random_trace(seed, options);
    const StepIndex index(trace);
    const Footprints footprints(index);
    const Bytes floor = memory_floor(footprints).bytes;
    const auto resident = simulator::replay(index, simulator::resident_schedule(index));
    for (std::uint64_t plan = 0; plan < 3; ++plan) {
      const bool streams = (options.parameters || options.several_weights) && plan != 1;
      const Decisions decisions = draw(trace, seed * 3 + plan, streams, random);
      const auto lowering = simulator::lower(index, decisions);
      ASSERT_TRUE(lowering.ok()) << lowering.error().text();
      const auto replayed = simulator::replay(index, lowering->schedule);
      const Nanoseconds bound = shortest_step(footprints, replayed.peak_requested);
      ASSERT_LE(floor, replayed.peak_requested) << "plan " << plan;
      ASSERT_LE(bound, replayed.step_ns) << "plan " << plan;
      moved += lowering->schedule.tenants.empty() ? 0 : 1;
      lower += replayed.peak_requested < resident.peak_requested ? 1 : 0;
      bounded += bound > resident.step_ns ? 1 : 0;
    }
  }
  if (cases < 100) return;
  // Most of them test something.
  EXPECT_GT(moved, cases * 2);
  EXPECT_GT(lower, cases / 2);
  EXPECT_GT(bounded, cases / 10);
}

}  // namespace
}  // namespace stowage::planner
