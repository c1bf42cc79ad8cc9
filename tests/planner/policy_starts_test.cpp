// `auto` finds no less than an allowed policy does.
#include "planner/policy_starts.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/random_chain.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

const std::vector<std::string>& specs() {
  static const std::vector<std::string> all = {
      "save_on_cpu",        "layerwise",           "torchtune", "thunder",           "checkpoint",
      "checkpoint:every=2", "checkpoint:run=sqrt", "selective", "selective:every=2", "fairscale"};
  return all;
}

// How many of the policies' plans were compared with those of `auto` for these parts of the
// resident peak, in percent.
int compare(const simulator::StepIndex& index, const Allowed& allowed,
            const std::vector<std::int64_t>& parts) {
  int compared = 0;
  const Bytes resident = simulator::replay(index, simulator::resident_schedule(index)).peak_active;
  for (const std::int64_t part : parts) {
    PlanRequest request;
    request.budget = resident * part / 100;
    request.allowed = allowed;
    const auto found = make_plan(index, request);
    EXPECT_TRUE(found.ok()) << found.error().text();
    if (!found) continue;
    for (const std::string& spec : specs()) {
      SCOPED_TRACE(spec + " at " + std::to_string(part) + " %");
      const auto rules = policy_rules(index, spec);
      if (!rules || !admits(allowed, *rules)) continue;
      PlanRequest other;
      other.policy = spec;
      const auto policy = make_plan(index, other);
      if (!policy || policy->predicted.peak_active > *request.budget) continue;
      ++compared;
      EXPECT_TRUE(found->feasible()) << name_of(found->kind);
      EXPECT_LE(found->predicted.step_ns, policy->predicted.step_ns);
    }
  }
  return compared;
}

const Allowed kAgainAlone{.offload = false, .recompute = true, .parameters = false};

TEST(PolicyStarts, AutoFindsNoLessThanAnAllowedPolicyOnRandomSteps) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Trace trace = testing::random_chain(
        random, 2 + static_cast<int>(seed % 5),
        seed % 2 == 0 ? testing::ChainOps::alone_too : testing::ChainOps::of_layers);
    const simulator::StepIndex index(trace);
    compared += compare(index, kAgainAlone, {97, 90, 80, 65});
    compared += compare(index, {}, {90, 65});
    compared += compare(index, {.offload = true, .recompute = false, .parameters = false}, {80});
  }
  EXPECT_GT(compared, 120);
}

TEST(PolicyStarts, AutoFindsNoLessThanAnAllowedPolicyOnARecording) {
  const auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/resnet50-fp32-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const simulator::StepIndex index(loaded->trace);
  EXPECT_GT(compare(index, kAgainAlone, {99, 95, 90}), 0);
}

// Ops take longer than copies would, which are not allowed.
TEST(PolicyStarts, WhatMayNotBeCopiedIsMadeAgainHoweverFastCopiesAre) {
  const auto loaded = load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-bf16-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  Trace trace = loaded->trace;
  for (LinkCurve* const curve : {&trace.calibration.d2h, &trace.calibration.h2d}) {
    for (std::int64_t& speed : curve->bytes_per_second) speed = 1'000'000'000'000'000;
  }
  const simulator::StepIndex index(trace);
  EXPECT_GT(compare(index, kAgainAlone, {95, 80}), 0);
}

TEST(PolicyStarts, RulesAreAdmittedByWhatTheyDecide) {
  PolicyRules rules;
  EXPECT_TRUE(admits({false, false, false}, rules));
  rules.recompute = {{"layers.*"}};
  EXPECT_TRUE(runs_again(rules));
  EXPECT_FALSE(admits({true, false, true}, rules));
  EXPECT_TRUE(admits(kAgainAlone, rules));
  rules.recompute[0].boundary = simulator::Decision::offload;
  EXPECT_FALSE(admits(kAgainAlone, rules));
  EXPECT_TRUE(admits({true, true, false}, rules));
  rules.parameters.emplace();
  rules.parameters->stream = simulator::StreamMode::always;
  EXPECT_FALSE(admits({true, true, false}, rules));
  EXPECT_TRUE(admits({}, rules));
}

}  // namespace
}  // namespace stowage::planner
