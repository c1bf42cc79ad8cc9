// Optimizer state that streams: rules by layer, its stays, time and memory by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/tenant_kind.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// Layers in the order of their parents; each has a parameter, and that a piece of state.
// Storage rows: 2i the parameter of names[i], 2i + 1 its state.
Trace nested() {
  MicroTrace t;
  for (const char* name : {"embed", "layers.0", "layers.0.mlp", "layers.1", "layers.1.mlp"}) {
    t.begin_layer(name);
    const StorageId parameter = t.existing(64);
    t.end_layer(name);
    t.state_of(parameter, 64);
    if (std::string(name) == "layers.0" || std::string(name) == "layers.1") t.begin_layer(name);
    if (std::string(name).ends_with(".mlp")) t.end_layer(std::string(name).substr(0, 8));
  }
  return t.finish();
}

std::vector<std::size_t> streaming(const Trace& trace, std::vector<OptimizerRule> rules) {
  const auto resolved = resolve_optimizer(trace, rules);
  EXPECT_TRUE(resolved.ok()) << (resolved ? "" : resolved.error().text());
  std::vector<std::size_t> rows;
  for (std::size_t s = 0; resolved && s < resolved->state_streams.size(); ++s) {
    if (resolved->state_streams[s]) rows.push_back(s);
  }
  return rows;
}

TEST(OptimizerRules, TheFirstThatNamesALayerOrOneAroundItDecides) {
  const Trace trace = nested();
  using Rows = std::vector<std::size_t>;
  constexpr auto kStream = StatePlace::stream;
  constexpr auto kDevice = StatePlace::device;
  EXPECT_EQ(streaming(trace, {}), Rows());
  EXPECT_EQ(streaming(trace, {{"*", kStream}}), (Rows{1, 3, 5, 7, 9}));
  EXPECT_EQ(streaming(trace, {{"layers.1", kStream}}), (Rows{7, 9}));
  EXPECT_EQ(streaming(trace, {{"layers.*.mlp", kDevice}, {"layers.*", kStream}}), (Rows{3, 7}));
  EXPECT_EQ(streaming(trace, {{"layers.*", kStream}, {"layers.*.mlp", kDevice}}),
            (Rows{3, 5, 7, 9}));
  EXPECT_EQ(streaming(trace, {{"layers.0", kDevice}, {"*", kStream}}), (Rows{1, 7, 9}));
}

TEST(OptimizerRules, AreRefusedWhereTheyNameNothing) {
  const Trace trace = nested();
  const auto wrong = resolve_optimizer(trace, {{"*", StatePlace::stream}, {"layer.1", {}}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().pointer, "/optimizer/1/layer");
  EXPECT_NE(wrong.error().hint.find("layers.1"), std::string::npos) << wrong.error().text();
  MicroTrace without;
  without.begin_layer("a");
  without.existing(64);
  without.end_layer("a");
  const Trace bare = without.finish();
  const auto none = resolve_optimizer(bare, {{"*", StatePlace::stream}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().hint, "the trace has no optimizer state");
}

// Any set of them: written as rules, as JSON, read back, resolved.
TEST(OptimizerRules, GiveEverySetBack) {
  const Trace trace = nested();
  for (unsigned mask = 0; mask < 32; ++mask) {
    OptimizerDecisions decisions;
    decisions.state_streams.assign(trace.storages.size(), false);
    for (std::size_t i = 0; i < 5; ++i) decisions.state_streams[2 * i + 1] = (mask >> i & 1U) != 0;
    Plan plan;
    plan.optimizer = to_optimizer_rules(trace, decisions);
    EXPECT_EQ(plan.optimizer.empty(), mask == 0);
    const auto read = plan_from_json(plan_to_json(plan), "p.json");
    ASSERT_TRUE(read.ok()) << read.error().text();
    ASSERT_EQ(read->optimizer, plan.optimizer);
    const auto back = resolve(trace, *read);
    ASSERT_TRUE(back.ok()) << back.error().text();
    if (mask == 0) continue;
    EXPECT_EQ(back->optimizer, decisions) << mask;
  }
}

// What identical layers have in common is one rule.
TEST(OptimizerRules, AreShort) {
  const Trace trace = nested();
  OptimizerDecisions decisions;
  for (const StorageClass each : trace.storages.storage_class) {
    decisions.state_streams.push_back(each == StorageClass::optimizer_state);
  }
  decisions.state_streams[1] = false;  // embed
  const std::vector<OptimizerRule> rules = to_optimizer_rules(trace, decisions);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0], (OptimizerRule{"layers.[0-1]", StatePlace::stream}));
}

// Parameters a (100 bytes) and b (200) with 300 and 500 bytes of state. The link moves a byte a
// nanosecond each way; in brackets the resident time.
//   0 step_begin   1 forward a   2 op   3 op end [1000]   4 forward end a
//   5 forward b    6 op   7 op end [2000]   8 forward end b
//   9 backward_begin   10 backward_end (of nothing)
//  11 update a   12 op   13 op end [2100]   14 update end a
//  15 update b   16 op   17 op end [2200]   18 update end b
//  19 step_end
struct TwoUpdates {
  TwoUpdates() : trace(make()) {}

  static Trace make() {
    MicroTrace t;
    t.set_up();
    const StorageId a = t.existing(100);
    const StorageId b = t.existing(200);
    t.state_of(a, 300);
    t.state_of(b, 500);
    for (const auto& [name, parameter] : {std::pair{"a", a}, std::pair{"b", b}}) {
      t.begin_layer(name);
      t.begin_op();
      t.read(parameter);
      t.run(1000).end_op();
      t.end_layer(name);
    }
    t.backward();
    t.optimizer();
    t.update(a, 100);
    t.update(b, 100);
    return t.finish();
  }

  [[nodiscard]] Schedule schedule(std::optional<Bytes> budget) const {
    Plan plan;
    plan.optimizer = {{"*", StatePlace::stream}};
    plan.budget.automatic = budget;
    auto lowered = lower(index, plan);
    EXPECT_TRUE(lowered.ok()) << (lowered ? "" : lowered.error().text());
    if (!lowered) return {};
    EXPECT_TRUE(lowered->notes.empty());
    EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
    return std::move(lowered->schedule);
  }

  static constexpr StorageId kStateA{2};
  static constexpr StorageId kStateB{3};
  Trace trace;
  StepIndex index{trace};
};

std::string text_of(const Schedule& s) {
  std::string out;
  for (const Instruction& i : s.instructions) {
    out += (out.empty() ? "" : " ") + std::string(name_of(i.action)) + ":" +
           std::to_string(s.tenant(i.stay).storage.value) + "@" +
           std::to_string(i.anchor.event.value) + (i.anchor.side == Side::after ? "+" : "-");
  }
  return out;
}

TEST(OptimizerState, IsThereForItsUpdateAlone) {
  const TwoUpdates t;
  const Schedule s = t.schedule(0);
  ASSERT_EQ(s.tenants.size(), 2u);
  for (const Tenant& tenant : s.tenants) {
    EXPECT_EQ(tenant.kind, &kOptimizerState);
    EXPECT_TRUE(tenant.has_own_home);
  }
  EXPECT_EQ(label(t.trace, s, TenantId(std::size_t{0})), "optimizer state 0 (a)");
  EXPECT_EQ(text_of(s),
            "load:2@11+ await:2@11+ store:2@14+ evict:2@14+ "
            "load:3@15+ await:3@15+ store:3@18+ evict:3@19-");
  // On demand all of it is waited for: 300 + 300 + 500 + 500.
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, s, &detail);
  EXPECT_EQ(r.h2d_bytes, 800);
  EXPECT_EQ(r.d2h_bytes, 800);
  EXPECT_EQ(r.stall_ns, 1600);
  EXPECT_EQ(r.step_ns, 3800);
  // a and b, and the state of one of them.
  EXPECT_EQ(detail.requested[0], 300);
  EXPECT_EQ(detail.requested[12], 600);
  EXPECT_EQ(r.peak_requested, 800);
  EXPECT_EQ(r.peak_event, EventId(15));
  EXPECT_EQ(r.host_bytes, 1024);
}

// With room enough both come beside b's forward, at 1000 at the latest, so that the updates wait
// for nothing. a's is out from 2100 to 2400, b's behind it to 2900: the step waits for that, 700.
TEST(OptimizerState, ComesBesideForwardWhereThereIsRoom) {
  const TwoUpdates t;
  const Schedule s = t.schedule({});
  EXPECT_EQ(text_of(s),
            "load:2@5+ load:3@5+ await:2@11+ store:2@14+ await:3@15+ store:3@18+ "
            "evict:2@19- evict:3@19-");
  const ReplayResult r = replay(t.index, s);
  EXPECT_EQ(r.stall_ns, 700);
  EXPECT_EQ(r.step_ns, 2900);
  EXPECT_EQ(r.peak_requested, 1100);
}

// The first step of the recording made it. Under the plan it is at home by then: the allocator is
// never asked for it but by loads.
TEST(OptimizerState, IsNeverMadeOnTheDevice) {
  TwoUpdates t;
  ASSERT_TRUE(t.trace.setup.size() > 0);
  const Schedule s = t.schedule(0);
  const AllocationSequence sequence = allocation_sequence(t.index, s);
  int at_home = 0;
  for (std::size_t row = 0; row < t.trace.setup.size(); ++row) {
    const bool is_state = t.trace.setup.storage[row] == TwoUpdates::kStateA ||
                          t.trace.setup.storage[row] == TwoUpdates::kStateB;
    EXPECT_EQ(sequence.is_born_at_home(t.trace.setup, row), is_state);
    at_home += is_state ? 1 : 0;
  }
  EXPECT_EQ(at_home, 2);
  // Two parameters and one buffer, rounded to 512 each; resident all four.
  EXPECT_EQ(replay_allocator(t.index, s).peak_active, 3 * 512);
  EXPECT_EQ(replay_allocator(t.index, resident_schedule(t.index)).peak_active, 4 * 512);
}

// A step without its update needs none of it.
TEST(OptimizerState, StaysAtHomeWhereTheUpdateIsSkipped) {
  const TwoUpdates t;
  const auto skipped = skip_update(t.index, t.schedule(0));
  ASSERT_TRUE(skipped.ok()) << skipped.error().text();
  EXPECT_TRUE(skipped->schedule.instructions.empty());
  const ReplayResult r = replay(StepIndex(skipped->step), skipped->schedule);
  EXPECT_EQ(r.step_ns, 2000);
  EXPECT_EQ(r.peak_requested, 300);
  // What was under way by then goes again, and nothing of it is stored.
  const auto early = skip_update(t.index, t.schedule({}));
  ASSERT_TRUE(early.ok()) << early.error().text();
  const ReplayResult loaded = replay(StepIndex(early->step), early->schedule);
  EXPECT_EQ(loaded.h2d_bytes, 800);
  EXPECT_EQ(loaded.d2h_bytes, 0);
  EXPECT_EQ(loaded.step_ns, 2000);
}

// What is read by something that is no update is there for that, too; what is written by it stays.
TEST(OptimizerState, StaysWhereSomethingElseWritesIt) {
  for (const bool writes : {false, true}) {
    MicroTrace t;
    const StorageId a = t.existing(100);
    const StorageId state = t.state_of(a, 300);
    t.begin_layer("a");
    t.begin_op();
    t.read(a);
    t.run(1000).end_op();
    t.end_layer("a");
    t.backward();
    t.optimizer();
    t.begin_op();
    writes ? t.write(state) : t.read(state);
    t.end_op();
    t.update(a, 100);
    const Trace trace = t.finish();
    const StepIndex index(trace);
    EXPECT_EQ(index.model_state_uses().touches_of(state).size(), 2u);
    Plan plan;
    plan.optimizer = {{"a", StatePlace::stream}};
    const auto lowered = lower(index, plan);
    ASSERT_TRUE(lowered.ok()) << lowered.error().text();
    EXPECT_EQ(lowered->schedule.tenants.size(), writes ? 0u : 1u);
    ASSERT_EQ(lowered->notes.size(), writes ? 1u : 0u);
    if (!writes) continue;
    EXPECT_EQ(subject_of(trace, lowered->notes[0]), "optimizer state of a (storage 1)");
    EXPECT_EQ(lowered->notes[0].text,
              "stays: the recording does not say when the optimizer updates it");
  }
}

}  // namespace
}  // namespace stowage::simulator
