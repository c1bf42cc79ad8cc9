// Plans of traces whose layers are named by the characters of patterns: written and read back, each
// policy's plan decides the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "planner/policy.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/plan_json.h"
#include "tests/support/small_trace.h"
#include "traces/trace_json.h"
#include "traces/validate.h"

namespace stowage::planner {
namespace {

using simulator::Decisions;
using simulator::Plan;
using simulator::StepIndex;

std::string nasty_name(std::mt19937& random) {
  const std::string characters = "[]*-?0123456789a.";
  std::string name;
  for (std::size_t length = 1 + random() % 5; length > 0; --length) {
    name += characters[random() % characters.size()];
  }
  return name;
}

// The small trace with a parameter's shard a layer, every layer and every site renamed.
Trace renamed(std::mt19937& random) {
  Trace trace = testing::small_trace(6);
  std::set<std::string> taken;
  std::map<StringId, std::string> new_names;
  const auto fresh = [&] {
    for (;;) {
      std::string name = nasty_name(random);
      if (taken.insert(name).second) return name;
    }
  };
  for (StringId& name : trace.layers.name) {
    trace.strings.push_back(fresh());
    name = StringId(trace.strings.size() - 1);
  }
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    const LayerId layer = trace.saved.layer[i];
    const std::string path =
        layer.valid() ? trace.string(trace.layers.name[layer.index()]) : fresh();
    trace.strings.push_back(path + "#" + std::to_string(i % 3) + (i < 3 ? "" : nasty_name(random)));
    while (!taken.insert(trace.strings.back()).second) trace.strings.back() += "[";
    trace.saved.site[i] = StringId(trace.strings.size() - 1);
  }
  return trace;
}

Decisions without_rules(Decisions decisions) {
  for (auto& saved : decisions.saved) saved.rule = -1;
  return decisions;
}

void expect_same_behind_the_file(const Trace& trace, const Plan& plan) {
  const std::string text = simulator::plan_to_json(plan);
  const auto read = simulator::plan_from_json(text, "p.json");
  ASSERT_TRUE(read.ok()) << read.error().text() << text;
  EXPECT_EQ(simulator::plan_to_json(*read), text);
  const auto before = simulator::resolve(trace, plan);
  const auto after = simulator::resolve(trace, *read);
  ASSERT_TRUE(before.ok()) << before.error().text() << text;
  ASSERT_TRUE(after.ok()) << after.error().text() << text;
  EXPECT_EQ(without_rules(*before).saved, without_rules(*after).saved);
  EXPECT_EQ(before->parameters, after->parameters);
}

TEST(NastyNames, PlansOfEveryPolicyComeBack) {
  std::mt19937 random(9);
  for (int round = 0; round < 40; ++round) {
    const Trace trace = renamed(random);
    const Status valid = validate(trace, "t.json");
    ASSERT_TRUE(valid) << valid.error().text();
    const StepIndex index(trace);
    for (const PolicyInfo& policy : policies()) {
      SCOPED_TRACE(policy.name);
      if (policy.recomputes) continue;                  // its layers are scopes
      if (policy.divides == Divides::always) continue;  // it was not recorded so
      PlanRequest request;
      request.policy = policy.name;
      request.budget_on = simulator::PeakKind::requested;
      if (policy.name == "auto") request.budget = testing::small_trace_peak(6) * 7 / 10;
      const auto outcome = make_plan(index, request);
      ASSERT_TRUE(outcome.ok()) << outcome.error().text();
      expect_same_behind_the_file(trace, outcome->plan);
    }
  }
}

// Any decisions at all, each layer's another.
TEST(NastyNames, RulesOfRandomDecisionsComeBack) {
  std::mt19937 random(10);
  for (int round = 0; round < 300; ++round) {
    const Trace trace = renamed(random);
    Decisions decisions;
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      simulator::SavedDecision decision;
      if (random() % 2 == 0) decision.decision = simulator::Decision::offload;
      decisions.saved.push_back(decision);
    }
    Plan plan;
    plan.saved = simulator::to_rules(trace, decisions);
    const auto resolved = simulator::resolve(trace, plan);
    ASSERT_TRUE(resolved.ok()) << resolved.error().text();
    EXPECT_EQ(without_rules(*resolved).saved, decisions.saved);
    expect_same_behind_the_file(trace, plan);
  }
}

TEST(NastyNames, ANameTwiceIsRefused) {
  Trace trace = testing::small_trace(3);
  trace.layers.name.back() = trace.layers.name[1];
  const auto refused = trace_from_json(trace_to_json(trace), "t.json");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
  EXPECT_EQ(refused.error().message, "is the name of row 1 as well: a layer has a name of its own");
  trace = testing::small_trace(3);
  trace.saved.site[1] = trace.saved.site[0];
  const auto site = trace_from_json(trace_to_json(trace), "t.json");
  ASSERT_FALSE(site.ok());
  EXPECT_EQ(site.error().pointer, "/saved/site/1");
}

}  // namespace
}  // namespace stowage::planner
