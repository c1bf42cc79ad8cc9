// Plans in which the host updates a part of the parameters: what `auto` answers, and the bound of
// all such plans, against rules by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/replay/replay.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "tests/support/all_on_host.h"
#include "tests/support/micro_trace.h"
#include "tests/support/slowdown.h"

namespace stowage::planner {
namespace {

using simulator::OptimizerRule;
using simulator::StatePlace;
using simulator::StepIndex;

constexpr Bytes kMebibyte = Bytes{1} << 20;

PlanRequest request_for(Bytes budget) {
  PlanRequest request;
  request.budget = budget;
  request.budget_on = simulator::PeakKind::requested;
  return request;
}

// The answer's plan with these rules in the place of its own; none where it cannot be.
std::optional<simulator::ReplayResult> with_rules(const Trace& trace, const PlanOutcome& outcome,
                                                  const std::vector<OptimizerRule>& rules,
                                                  Bytes budget) {
  simulator::Plan plan = outcome.plan;
  plan.optimizer = rules;
  plan.budget.automatic = budget;
  const auto step = simulator::unroll(trace, plan);
  if (!step) return std::nullopt;
  const StepIndex index(*step);
  const auto lowered = simulator::lower(index, plan);
  if (!lowered) return std::nullopt;
  return simulator::replay(index, lowered->schedule);
}

struct Layer {
  std::string name;
  Bytes weights = 0;
  Bytes state = 0;
  Nanoseconds forward = 0;
  Nanoseconds backward = 0;
  Nanoseconds update = 0;
};

// The layers' ops are kernels where `sync` is given: then the CPU waits so long for the device
// ahead of the first update.
Trace step_of(const std::vector<Layer>& layers, std::optional<Nanoseconds> sync,
              const std::string& around, Bytes other, Nanoseconds host_ns_per_gib) {
  testing::MicroTrace t;
  t.link().d2h = t.link().h2d = testing::flat_link(1'000'000'000);
  t.link().host_update_ns_per_gib = host_ns_per_gib;
  std::vector<StorageId> weights;
  for (const Layer& layer : layers) {
    weights.push_back(t.existing(layer.weights));
    t.state_of(weights.back(), layer.state);
  }
  const StorageId own = around.empty() ? StorageId() : t.existing(4);
  for (const StorageId each : weights) t.free(t.gradient_before(each));
  const auto run = [&](Nanoseconds time) {
    if (sync) {
      t.kernel(time);
    } else {
      t.run(time);
    }
  };
  if (!around.empty()) {
    t.begin_layer(around);
    t.begin_op();
    t.read(own);
    t.set_layer(own, around);
    t.end_op();
  }
  if (other > 0) {
    t.begin_layer("net.other");
    t.begin_op();
    const StorageId some = t.alloc(other);
    run(10'000'000);
    t.end_op();
    t.free(some);
    t.end_layer("net.other");
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    t.begin_layer(layers[i].name);
    t.begin_op();
    t.read(weights[i]);
    t.set_layer(weights[i], layers[i].name);
    run(layers[i].forward);
    t.end_op();
    t.end_layer(layers[i].name);
  }
  if (!around.empty()) t.end_layer(around);
  t.backward();
  for (std::size_t i = layers.size(); i-- > 0;) {
    t.begin_layer_backward(layers[i].name);
    t.begin_op();
    t.read(weights[i]);
    t.make_gradient(weights[i]);
    run(layers[i].backward);
    t.end_op();
    t.accumulate(weights[i]);
    t.end_layer_backward(layers[i].name);
  }
  t.optimizer();
  if (sync) t.sync(*sync);
  for (std::size_t i = layers.size(); i-- > 0;) t.update(weights[i], layers[i].update);
  return t.finish();
}

// Without the update there is no sync ahead of it, and the CPU launches far ahead of the device: a
// step without that update is shorter by more than what it computes and launches.
TEST(MixedBounds, HoldWhereTheCpuWaitsInAnUpdate) {
  const std::vector<Layer> layers = {
      {"net.b", 256 * kMebibyte, 512 * kMebibyte, 5'000'000, 50'000'000, 40'000'000},
      {"net.a", kMebibyte, 2 * kMebibyte, 5'000'000, 50'000'000, 10'000}};
  const Trace trace = step_of(layers, 100'000'000, "", 0, 0);
  const StepIndex index(trace);
  for (const Bytes budget : {2000 * kMebibyte, 1028 * kMebibyte - 1}) {
    const auto outcome = make_plan(index, request_for(budget));
    ASSERT_TRUE(outcome.ok());
    EXPECT_LE(outcome->lower_bound_step, outcome->predicted.step_ns);
    int within = 0;
    for (const char* layer : {"net.a", "net.b"}) {
      const auto mix = with_rules(trace, *outcome, {{layer, StatePlace::host}}, budget);
      ASSERT_TRUE(mix.has_value());
      if (mix->peak_requested > budget) continue;
      ++within;
      EXPECT_LE(outcome->lower_bound_step, mix->step_ns) << layer;
    }
    EXPECT_GT(within, 0);
  }
}

// A layer around both that has parameters of its own makes one of them for what streams, but rules
// have a name for each.
TEST(MixedBounds, AreOfLayersThatRulesCanName) {
  const std::vector<Layer> layers = {
      {"net.a", kMebibyte, 10 * kMebibyte, 5'000'000, 5'000'000, 1'000'000},
      {"net.b", kMebibyte, 30 * kMebibyte, 5'000'000, 5'000'000, 1'000'000}};
  const Bytes budget = 68 * kMebibyte + 4;
  for (const char* around : {"", "net"}) {
    const Trace trace = step_of(layers, {}, around, 64 * kMebibyte, 700'000'000);
    const auto outcome = make_plan(StepIndex(trace), request_for(budget));
    ASSERT_TRUE(outcome.ok());
    ASSERT_EQ(outcome->kind, PlanKind::planned);
    EXPECT_LE(outcome->lower_bound_step, outcome->predicted.step_ns);
    const auto mix = with_rules(
        trace, *outcome, {{"net.a", StatePlace::stream}, {"net.b", StatePlace::host}}, budget);
    ASSERT_TRUE(mix.has_value());
    EXPECT_LE(mix->peak_requested, budget);
    EXPECT_LE(outcome->lower_bound_step, mix->step_ns) << around;
  }
}

class RandomRules {
 public:
  explicit RandomRules(std::uint64_t seed) : random_(seed * 7919 + 1) {}

  Trace trace(std::uint64_t seed) {
    testing::RandomTraceOptions options;
    options.ops = 4 + static_cast<int>(random_() % 10);
    options.parameters = true;
    options.several_weights = random_() % 3 == 0;
    options.device_times = random_() % 4 == 0;
    options.setup = random_() % 4 == 0;
    options.updates_in_backward = seed % 5 == 2;
    Trace trace = testing::random_trace(seed, options);
    if (random_() % 2 == 0) {
      trace.calibration.host_update_ns_per_gib = Nanoseconds{1'000'000'000} >> (random_() % 8);
    }
    return trace;
  }

  std::vector<OptimizerRule> rules(const Trace& trace) {
    std::vector<bool> is_updated(trace.layers.size());
    for (const LayerId layer : simulator::layers_of_updated_parameters(trace)) {
      if (layer.valid()) is_updated[layer.index()] = true;
    }
    std::vector<OptimizerRule> rules;
    for (std::size_t l = trace.layers.size(); l-- > 1;) {
      if (!is_updated[l] || random_() % 6 == 0) continue;
      const StatePlace places[] = {StatePlace::host, StatePlace::stream, StatePlace::device};
      rules.push_back({trace.string(trace.layers.name[l]), places[random_() % 3]});
    }
    return rules;
  }

  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
};

TEST(MixedBounds, HoldForRulesByHand) {
  int plans = 0, mixed = 0, by_hand = 0;
  for (std::uint64_t seed = 1; seed <= 300; seed += testing::stride()) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRules random(seed);
    const Trace trace = random.trace(seed);
    const StepIndex index(trace);
    const std::size_t may = testing::all_on_host(index).host_updates.size();
    if (may == 0) continue;
    PlanRequest request = request_for(0);
    if (trace.setup.size() > 0) request.budget_on = simulator::PeakKind::active;
    const auto peak_of = [&](const simulator::ReplayResult& result) {
      return trace.setup.size() > 0 ? result.peak_active : result.peak_requested;
    };
    request.allowed.recompute = random.random()() % 3 == 0;
    const Bytes resident =
        peak_of(simulator::replay(index, simulator::resident_schedule(index, request.placement)));
    const Bytes budget = resident * static_cast<Bytes>(40 + random.random()() % 60) / 100;
    if (budget <= 0) continue;
    request.budget = budget;
    const auto outcome = make_plan(index, request);
    ASSERT_TRUE(outcome.ok()) << outcome.error().text();
    if (!outcome->feasible()) continue;
    ++plans;
    EXPECT_LE(peak_of(outcome->predicted), budget);
    EXPECT_LE(outcome->lower_bound_step, outcome->predicted.step_ns);
    const auto step = simulator::unroll(trace, outcome->plan);
    ASSERT_TRUE(step.ok());
    const std::size_t on_host = step->host_updates().size();
    mixed += on_host > 0 && on_host < may ? 1 : 0;
    for (int k = 0; k < 10; ++k) {
      const auto result = with_rules(trace, *outcome, random.rules(trace), budget);
      if (!result || peak_of(*result) > budget) continue;
      ++by_hand;
      EXPECT_LE(outcome->lower_bound_step, result->step_ns);
    }
    if (::testing::Test::HasFailure()) return;
  }
  std::cout << plans << " plans, " << mixed << " of them mixes, " << by_hand
            << " by hand within the budget\n";
  EXPECT_GT(mixed, 0);
  EXPECT_GT(by_hand, plans);
}

// Pinned to the host, also layers of which it can update nothing: rules ask it for these, and so
// nothing else is decided of their state.
TEST(MixedUpdates, GoWithEverythingPinnedToTheHost) {
  int plans = 0, stay = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRules random(seed);
    const Trace trace = random.trace(seed);
    const StepIndex index(trace);
    const simulator::DeviceUpdates updates(index);
    const Bytes resident =
        simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
    PlanRequest request = request_for(resident * 7 / 10);
    request.pins.optimizer = {{"*", StatePlace::host}};
    const auto outcome = make_plan(index, request);
    if (!outcome) continue;  // nothing is there that the host could be asked for
    for (const StorageId parameter : updates.parameters()) {
      stay += updates.reason_to_stay(parameter).empty() ? 0 : 1;
    }
    ++plans;
    for (const OptimizerRule& rule : outcome->plan.optimizer) {
      EXPECT_NE(rule.state, StatePlace::stream) << rule.layer;
    }
  }
  EXPECT_GT(plans, 20);
  EXPECT_GT(stay, 20);
}

}  // namespace
}  // namespace stowage::planner
