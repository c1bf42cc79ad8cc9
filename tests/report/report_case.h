// Random planned steps for the tests of what is said about them.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"

namespace stowage::report_tests {

// A random trace under random decisions: device times on some seeds, streamed parameters on others.
struct RandomCase {
  explicit RandomCase(std::uint64_t seed)
      : trace(testing::random_trace(seed, {.ops = static_cast<int>(4 + seed % 14),
                                           .device_times = seed % 2 == 1,
                                           .parameters = seed % 3 == 1})),
        index(trace) {
    simulator::Decisions decisions = testing::random_decisions(trace, seed);
    if (seed % 3 == 1) decisions.parameters = testing::random_shards(trace, seed);
    if (seed % 3 == 1) decisions.optimizer = testing::random_state(trace, seed);
    const auto lowered = simulator::lower(index, decisions);
    EXPECT_TRUE(lowered.ok()) << seed << ": " << (lowered.ok() ? "" : lowered.error().text());
    schedule = lowered.ok() ? lowered->schedule : simulator::resident_schedule(index);
    result = simulator::replay(index, schedule, &detail);
  }

  Trace trace;
  simulator::StepIndex index;
  simulator::Schedule schedule;
  simulator::ReplayDetail detail;
  simulator::ReplayResult result;
};

// The same of a hand-made trace and plan.
struct HandCase {
  HandCase(Trace made, const simulator::Plan& plan) : trace(std::move(made)), index(trace) {
    const auto lowered = simulator::lower(index, plan);
    EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().text());
    schedule = lowered.ok() ? lowered->schedule : simulator::resident_schedule(index);
    result = simulator::replay(index, schedule, &detail);
  }

  Trace trace;
  simulator::StepIndex index;
  simulator::Schedule schedule;
  simulator::ReplayDetail detail;
  simulator::ReplayResult result;
};

inline simulator::SavedRule offload(const std::string& site) {
  simulator::SavedRule rule;
  rule.site = site;
  rule.decision = simulator::Decision::offload;
  return rule;
}

inline simulator::ReloadPoint reload_at_backward(const std::string& layer) {
  simulator::ReloadPoint point;
  point.kind = simulator::ReloadPoint::Kind::point;
  point.point.phase = simulator::ProgramPoint::Phase::backward;
  point.point.layer = layer;
  return point;
}

}  // namespace stowage::report_tests
