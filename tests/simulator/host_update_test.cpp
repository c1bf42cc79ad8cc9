// The optimizer on the host: what of the step is left out, stays and instructions, time by hand.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/machine/host_lane.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/plan_structure.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// Parameters w (1 MiB, layer L, with a piece of state as large) and v (512 KiB, layer M), updated
// behind backward. The link moves a byte a nanosecond each way, so w takes 1,048,576 ns and v half
// of that.
constexpr Bytes kW = Bytes{1} << 20;
constexpr Bytes kV = kW / 2;
constexpr Nanoseconds kForward = 2'000'000;   // of each layer
constexpr Nanoseconds kBackward = 3'000'000;  // likewise

Trace two_parameters(bool uses_behind = false) {
  MicroTrace t;
  const StorageId w = t.existing(kW);
  const StorageId v = t.existing(kV);
  t.state_of(w, kW);
  const StorageId old_w = t.gradient_before(w);
  const StorageId old_v = t.gradient_before(v);
  t.free(old_w);
  t.free(old_v);
  for (const auto& [name, parameter] : {std::pair{"L", w}, std::pair{"M", v}}) {
    t.begin_layer(name);
    t.begin_op();
    t.read(parameter);
    t.run(kForward).end_op();
    t.end_layer(name);
  }
  t.backward();
  for (const auto& [name, parameter] : {std::pair{"M", v}, std::pair{"L", w}}) {
    t.begin_layer_backward(name);
    t.begin_op();
    t.read(parameter);
    t.make_gradient(parameter);
    t.run(kBackward).end_op();
    t.accumulate(parameter);
    t.end_layer_backward(name);
  }
  t.optimizer();
  t.update(w, 100);
  t.update(v, 100);
  if (uses_behind) {
    t.begin_op();
    t.read(v);
    t.run(10).end_op();
  }
  return t.finish();
}

// The same with each update in backward, as soon as the gradient is there, which goes behind it;
// `between`: in the step before something else happens there.
Trace two_in_backward(bool between = false) {
  MicroTrace t;
  const StorageId w = t.existing(kW);
  const StorageId v = t.existing(kV);
  t.state_of(w, kW);
  for (const auto& [name, parameter] : {std::pair{"L", w}, std::pair{"M", v}}) {
    t.begin_layer(name);
    t.begin_op();
    t.read(parameter);
    t.run(kForward).end_op();
    t.end_layer(name);
  }
  t.backward();
  for (const auto& [name, parameter] : {std::pair{"M", v}, std::pair{"L", w}}) {
    t.begin_layer_backward(name);
    t.begin_op();
    t.read(parameter);
    const StorageId gradient = t.make_gradient(parameter);
    t.run(kBackward).end_op();
    t.accumulate(parameter);
    t.update(parameter, 100);
    if (between) {
      t.begin_op();
      t.read(gradient);
      t.run(10).end_op();
    }
    t.free(gradient);
    t.end_layer_backward(name);
  }
  return t.finish();
}

Plan on_host(const std::string& layer = "*") {
  Plan plan;
  plan.optimizer = {{layer, StatePlace::host}};
  return plan;
}

Step unrolled(const Trace& trace, const Plan& plan) {
  auto step = unroll(trace, plan);
  if (!step) throw std::runtime_error(step.error().text());
  return std::move(step).value();
}

struct Applied {
  Applied(const Trace& trace, const Plan& plan) : step(unrolled(trace, plan)), index(step) {
    auto lowered = lower(index, plan);
    EXPECT_TRUE(lowered.ok()) << (lowered ? "" : lowered.error().text());
    if (!lowered) return;
    schedule = std::move(lowered->schedule);
    for (const LoweringNote& note : lowered->notes) notes.push_back(note.text);
    for (const Hazard& hazard : find_hazards(index, schedule)) ADD_FAILURE() << hazard.text;
  }
  Step step;
  StepIndex index;
  Schedule schedule;
  std::vector<std::string> notes;
};

std::size_t count(const Trace& trace, EventKind kind) {
  std::size_t events = 0;
  for (const EventKind each : trace.events.kind) events += each == kind ? 1 : 0;
  return events;
}

TEST(HostUpdate, LeavesTheUpdatesOutOfTheStep) {
  const Trace trace = two_parameters();
  const Step all = unrolled(trace, on_host());
  EXPECT_EQ(count(all.trace(), EventKind::parameter_update_begin), 0u);
  EXPECT_EQ(count(all.trace(), EventKind::gradient_accumulated), 2u);
  EXPECT_EQ(all.host_updates(), (std::vector{StorageId(0), StorageId(1)}));
  EXPECT_EQ(&all.recording(), &trace);
  EXPECT_EQ(structure_of(all).host_updates, all.host_updates());
  const Step one = unrolled(trace, on_host("M"));
  EXPECT_EQ(count(one.trace(), EventKind::parameter_update_begin), 1u);
  EXPECT_EQ(count(one.trace(), EventKind::parameter_update_end), 1u);
  // Every row that is left is of the recording.
  for (std::size_t e = 0; e < one.trace().events.size(); ++e) {
    EXPECT_EQ(trace.events.kind[one.origin(EventId(e)).row.index()], one.trace().events.kind[e]);
  }
}

// v's gradient is there when M's backward is over, at 7 ms: it is out 0.524288 ms later, and the
// update of 1 MiB (v and its gradient) takes 1 ms. w's is there at 10 ms, out at 11.048576 ms, and
// 3 MiB with its state take 3 ms: 14.048576 ms. Only then may w come back, for L's forward, which
// nothing hides: the load waits for the update. v's is needed at 2 ms only.
TEST(HostUpdate, RunsBesideBackwardAndTheNextLoadWaitsForIt) {
  const Trace trace = two_parameters();
  const Applied applied(trace, on_host());
  EXPECT_TRUE(applied.notes.empty());
  const std::vector<HostUpdate> updates = host_updates(applied.index.trace(), applied.schedule);
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0].bytes, 2 * kV);
  EXPECT_TRUE(updates[0].state.empty());
  EXPECT_EQ(updates[1].bytes, 3 * kW);
  ASSERT_EQ(updates[1].state.size(), 1u);
  // State has a home and no stay.
  for (const Stay& stay : applied.schedule.stays) {
    EXPECT_NE(applied.schedule.tenants[stay.tenant.index()].kind, &kOptimizerState);
  }
  EXPECT_EQ(applied.schedule.host_bytes, 2 * kV + 3 * kW);
  const Calibration& link = trace.calibration;
  ReplayDetail detail;
  const ReplayResult result = replay(applied.index, applied.schedule, &detail);
  EXPECT_TRUE(guesses_host_updates(trace, result));
  ASSERT_EQ(detail.host_updates.size(), 2u);
  EXPECT_EQ(detail.host_updates[0].start, 7'000'000 + kV);
  EXPECT_EQ(detail.host_updates[0].end, 8'000'000 + kV);
  EXPECT_EQ(detail.host_updates[1].start, 10'000'000 + kW);
  EXPECT_EQ(detail.host_updates[1].end, 13'000'000 + kW);
  EXPECT_EQ(result.host_update_ns, 4'000'000);
  EXPECT_EQ(result.host_update_ns, host_update_ns(link, 2 * kV) + host_update_ns(link, 3 * kW));
  EXPECT_EQ(result.d2h_bytes, kV + kW);
  EXPECT_EQ(result.h2d_bytes, kV + kW);
  // Ahead of w's load the step is as long as its updates; behind that the load itself.
  EXPECT_EQ(result.step_ns, 13'000'000 + 2 * kW);
}

// Measured: 100 us each and 1 ms a MiB, half as fast while a lane moves bytes. w is alone for
// nothing: its weights' load waits for it. v's 1.1 ms begin at 7.524288 ms, beside nothing.
TEST(HostUpdate, TakesWhatIsMeasuredAloneAndBesideCopies) {
  Trace trace = two_parameters();
  trace.calibration.host_update_ns = 100'000;
  trace.calibration.host_update_ns_per_gib = 1'024'000'000;
  trace.calibration.host_update_interference = 500'000;
  const Applied applied(trace, on_host());
  ReplayDetail detail;
  const ReplayResult result = replay(applied.index, applied.schedule, &detail);
  EXPECT_FALSE(guesses_host_updates(trace, result));
  ASSERT_EQ(detail.host_updates.size(), 2u);
  EXPECT_EQ(detail.host_updates[0].start, 7'000'000 + kV);
  EXPECT_EQ(detail.host_updates[0].end, 8'100'000 + kV);
  EXPECT_EQ(detail.host_updates[1].ready, 10'000'000 + kW);
  EXPECT_EQ(detail.host_updates[1].end, 13'100'000 + kW);
  ASSERT_EQ(result.stalls.size(), 2u);
  EXPECT_TRUE(result.stalls[0].is_update);
  EXPECT_EQ(result.stalls[0].duration, 3'100'000 + kW);
  EXPECT_FALSE(result.stalls[1].is_update);  // the load behind it
  // w's gradient is out at 11.048576 ms; with v's 1 MiB of other state it is beside v's update.
  Trace slow = two_parameters();
  slow.calibration = trace.calibration;
  slow.calibration.host_update_ns_per_gib *= 4;
  const Applied slower(slow, on_host());
  static_cast<void>(replay(slower.index, slower.schedule, &detail).step_ns);
  ASSERT_EQ(detail.host_updates.size(), 2u);
  // v's 4.1 ms: 2.475712 alone until w's store at 10 ms, then 1.048576 beside it at half the
  // speed, then what is left.
  EXPECT_EQ(detail.host_updates[0].end, 7'000'000 + kV + 4'100'000 + kW / 2);
}

// The step without its updates is the one that has them behind backward, without those: gradients
// live on, and no step before has left any.
TEST(HostUpdate, OfUpdatesInBackwardTakesTheirGradients) {
  const Trace trace = two_in_backward();
  const Applied applied(trace, on_host());
  EXPECT_TRUE(applied.notes.empty());
  const Trace& left = applied.index.trace();
  EXPECT_EQ(count(left, EventKind::parameter_update_begin), 0u);
  EXPECT_EQ(count(left, EventKind::free), 0u);
  ASSERT_EQ(host_updates(left, applied.schedule).size(), 2u);
  for (const Tenant& tenant : applied.schedule.tenants) {
    EXPECT_FALSE(tenant.previous.valid());
    EXPECT_EQ(tenant.at_begin(), tenant.kind == &kGradient ? StorageId() : tenant.storage);
  }
  const Trace behind = two_parameters();
  const Applied there(behind, on_host());
  ReplayDetail detail;
  ReplayDetail detail_there;
  const ReplayResult result = replay(applied.index, applied.schedule, &detail);
  const ReplayResult result_there = replay(there.index, there.schedule, &detail_there);
  ASSERT_EQ(detail.host_updates.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(detail.host_updates[i].start, detail_there.host_updates[i].start);
    EXPECT_EQ(detail.host_updates[i].end, detail_there.host_updates[i].end);
  }
  EXPECT_EQ(result.step_ns, result_there.step_ns);
  // w with its gradient, and v's until its store is done.
  EXPECT_EQ(result.peak_requested, 2 * kW + kV);
  EXPECT_EQ(result_there.peak_requested, 2 * kW + kV);
  EXPECT_EQ(applied.schedule.host_bytes, there.schedule.host_bytes);
}

// M's is updated on the device in backward, and its gradient is gone behind that as recorded.
TEST(HostUpdate, OfSomeUpdatesInBackwardLeavesTheOthers) {
  const Trace trace = two_in_backward();
  const Applied applied(trace, on_host("L"));
  EXPECT_TRUE(applied.notes.empty());
  EXPECT_EQ(host_updates(applied.index.trace(), applied.schedule).size(), 1u);
  EXPECT_EQ(count(applied.index.trace(), EventKind::parameter_update_begin), 1u);
  EXPECT_EQ(count(applied.index.trace(), EventKind::free), 1u);
}

TEST(HostUpdate, InBackwardStaysWhereItsGradientDoesNotEndWithIt) {
  const Trace trace = two_in_backward(/*between=*/true);
  const Applied applied(trace, on_host());
  ASSERT_EQ(applied.notes.size(), 2u);
  EXPECT_EQ(applied.notes[0],
            "its update stays: its gradient is not freed right behind its update");
  EXPECT_TRUE(host_updates(applied.index.trace(), applied.schedule).empty());
}

TEST(HostUpdate, OfOneLayerLeavesTheOtherAsItWas) {
  const Trace trace = two_parameters();
  const Applied applied(trace, on_host("M"));
  EXPECT_TRUE(applied.notes.empty());
  EXPECT_EQ(host_updates(applied.index.trace(), applied.schedule).size(), 1u);
  for (const Tenant& tenant : applied.schedule.tenants) {
    EXPECT_EQ(applied.step.trace().storages.bytes[tenant.storage.index()], kV);
  }
}

// What reads a parameter behind its update needs the new weights there: the update stays.
TEST(HostUpdate, StaysWhereTheStepUsesTheParameterBehindIt) {
  const Trace trace = two_parameters(/*uses_behind=*/true);
  const Applied applied(trace, on_host());
  ASSERT_EQ(applied.notes.size(), 1u);
  EXPECT_EQ(applied.notes[0], "its update stays: the step uses it behind its update");
  EXPECT_EQ(count(applied.step.trace(), EventKind::parameter_update_begin), 1u);
  EXPECT_EQ(host_updates(applied.index.trace(), applied.schedule).size(), 1u);
}

// Python's optimizer knows its arithmetic, the host's thread does not.
TEST(HostUpdate, OfALoopInPythonStays) {
  Trace trace = two_parameters();
  trace.run.optimizer = "python:adamw";
  EXPECT_TRUE(unrolled(trace, on_host()).host_updates().empty());
  trace.run.optimizer = "adamw";
  EXPECT_EQ(unrolled(trace, on_host()).host_updates().size(), 2U);
}

TEST(HostUpdate, IsNotDoneOnAStepThatHasTheUpdate) {
  const Trace trace = two_parameters();
  const StepIndex recorded(trace);
  const auto lowered = lower(recorded, on_host());
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().pointer, "/optimizer");
}

TEST(HostUpdate, CannotBeSkipped) {
  const Trace trace = two_parameters();
  const Applied applied(trace, on_host());
  const auto skipped = skip_update(applied.index, applied.schedule);
  ASSERT_FALSE(skipped.ok());
  EXPECT_NE(skipped.error().message.find("cannot skip"), std::string::npos);
}

// Each way in which such a schedule can be wrong is seen.
TEST(HostUpdate, DamageIsSeen) {
  const Trace trace = two_parameters();
  const Applied applied(trace, on_host());
  const auto row = [&](const Schedule& s, Action action, std::size_t nth) {
    for (std::size_t i = 0; i < s.instructions.size(); ++i) {
      if (s.instructions[i].action == action && nth-- == 0) return i;
    }
    return s.instructions.size();
  };
  Schedule without = applied.schedule;
  without.instructions.erase(without.instructions.begin() +
                             static_cast<std::ptrdiff_t>(row(without, Action::update, 0)));
  EXPECT_FALSE(find_hazards(applied.index, without).empty());
  Schedule early = applied.schedule;  // ahead of the gradient's store, at the same place
  std::swap(early.instructions[row(early, Action::update, 0)],
            early.instructions[row(early, Action::store, 0)]);
  EXPECT_FALSE(find_hazards(applied.index, early).empty());
  Schedule alone = applied.schedule;  // its gradient takes the place of none, and one is there
  for (Tenant& tenant : alone.tenants) tenant.previous = {};
  const std::vector<Hazard> found = find_hazards(applied.index, alone);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found.front().text.find("takes the place of none"), std::string::npos);
  Schedule unknown = applied.schedule;  // the parameter's tenant is none that is updated
  for (Tenant& tenant : unknown.tenants) {
    if (tenant.kind == &kParameter) tenant.is_updated_at_home = false;
  }
  EXPECT_FALSE(find_hazards(applied.index, unknown).empty());
}

TEST(HostUpdate, RulesAreWrittenBack) {
  const Trace trace = two_parameters();
  for (const std::string& text :
       {std::string(R"({"layer": "*", "state": "host", "step": "host"})"),
        std::string(R"({"layer": "L", "state": "host", "step": "host"})"),
        std::string(R"({"layer": "M", "state": "host", "step": "host"}, )"
                    R"({"layer": "L", "state": "stream"})"),
        std::string(R"({"layer": "M", "state": "device"}, )"
                    R"({"layer": "*", "state": "host", "step": "host"})")}) {
    SCOPED_TRACE(text);
    const auto plan =
        plan_from_json(R"({"schema": "stowage-plan/1", "optimizer": [)" + text + "]}", "plan.json");
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    const auto decisions = resolve_optimizer(trace, plan->optimizer);
    ASSERT_TRUE(decisions.ok()) << decisions.error().text();
    const auto again = resolve_optimizer(trace, to_optimizer_rules(trace, *decisions));
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(again->updated_on_host, decisions->updated_on_host);
    EXPECT_EQ(again->state_streams, decisions->state_streams);
    const auto reread = plan_from_json(plan_to_json(*plan), "plan.json");
    ASSERT_TRUE(reread.ok()) << reread.error().text();
    EXPECT_EQ(reread->optimizer, plan->optimizer);
  }
}

// M has no state: that its update stays on the device can be said beside what the host updates.
TEST(HostUpdate, WhatHasNoStateMayBeNamedToStay) {
  const Trace trace = two_parameters();
  const auto some = resolve_optimizer(trace, {{"M", StatePlace::device}, {"*", StatePlace::host}});
  ASSERT_TRUE(some.ok()) << some.error().text();
  EXPECT_TRUE(some->updated_on_host[0]);
  EXPECT_FALSE(some->updated_on_host[1]);
  EXPECT_FALSE(resolve_optimizer(trace, {{"M", StatePlace::device}}).ok());
  EXPECT_FALSE(resolve_optimizer(trace, {{"N", StatePlace::device}, {"*", StatePlace::host}}).ok());
}

}  // namespace
}  // namespace stowage::simulator
