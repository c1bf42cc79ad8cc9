// Gradients that leave the device: rules by layer, their stays, time and memory by hand.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/hazards/hazards.h"
#include "simulator/hazards/skipped_update_check.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/placement/live_ranges.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/plan_json.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/tenant_kind.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/simulator/oracle_time.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_damage.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;
using testing::oracle_is_safe;

std::string text_of(const Schedule& s) {
  std::string out;
  for (const Instruction& i : s.instructions) {
    out += (out.empty() ? "" : " ") + std::string(name_of(i.action)) + ":" +
           std::to_string(s.tenant(i.stay).storage.value) + "@" +
           std::to_string(i.anchor.event.value) + (i.anchor.side == Side::after ? "+" : "-");
  }
  return out;
}

// Parameters w (500 bytes, layer L) and v (300, layer M), whose gradients the step before left; M's
// backward comes first. A temporary of 900 bytes in L's backward. The link moves a byte a
// nanosecond each way; in brackets the resident time.
//    0 step_begin            1 free old g(w)          2 free old g(v)
//    3 forward L             4 op                     5 op end [1000]         6 forward end L
//    7 forward M             8 op                     9 op end [2000]        10 forward end M
//   11 backward_begin       12 backward M            13 op                   14 make g(v)
//   15 op end [3000]        16 accumulated v         17 backward end M
//   18 backward L           19 op                    20 make temporary       21 op end [4000]
//   22 free temporary       23 op                    24 make g(w)            25 op end [4200]
//   26 accumulated w        27 backward end L        28 backward_end
//   29 update w             30 op                    31 op end [4300]        32 update end w
//   33 update v             34 op                    35 op end [4400]        36 update end v
//   37 step_end
struct TwoGradients {
  explicit TwoGradients(bool updates = true, bool has_setup = false)
      : trace(make(updates, has_setup)) {}

  static Trace make(bool updates, bool has_setup) {
    MicroTrace t;
    const StorageId w = t.existing(500);
    const StorageId v = t.existing(300);
    const StorageId old_w = t.gradient_before(w);
    const StorageId old_v = t.gradient_before(v);
    if (has_setup) t.set_up();
    t.free(old_w);
    t.free(old_v);
    for (const auto& [name, parameter] : {std::pair{"L", w}, std::pair{"M", v}}) {
      t.begin_layer(name);
      t.begin_op();
      t.read(parameter);
      t.run(1000).end_op();
      t.end_layer(name);
    }
    t.backward();
    t.begin_layer_backward("M");
    t.begin_op();
    t.make_gradient(v);
    t.run(1000).end_op();
    t.accumulate(v);
    t.end_layer_backward("M");
    t.begin_layer_backward("L");
    t.begin_op();
    const StorageId temporary = t.alloc(900, StorageClass::temporary);
    t.run(1000).end_op();
    t.free(temporary);
    t.begin_op();
    t.make_gradient(w);
    t.run(200).end_op();
    t.accumulate(w);
    t.end_layer_backward("L");
    t.optimizer();
    if (updates) {
      t.update(w, 100);
      t.update(v, 100);
    }
    return t.finish();
  }

  [[nodiscard]] Schedule schedule(std::optional<Bytes> budget) const {
    Plan plan;
    plan.gradients = {{"*", GradientPlace::host}};
    plan.budget.automatic = budget;
    auto lowered = lower(index, plan);
    EXPECT_TRUE(lowered.ok()) << (lowered ? "" : lowered.error().text());
    if (!lowered) return {};
    for (const LoweringNote& note : lowered->notes) ADD_FAILURE() << note.text;
    const auto hazards = find_hazards(index, lowered->schedule);
    EXPECT_TRUE(hazards.empty()) << hazards.front().text;
    EXPECT_TRUE(oracle_is_safe(trace, lowered->schedule));
    return std::move(lowered->schedule);
  }

  static constexpr StorageId kOldW{2};
  static constexpr StorageId kOldV{3};
  static constexpr StorageId kV{4};
  static constexpr StorageId kW{6};
  Trace trace;
  StepIndex index{trace};
};

// v's is out beside L's backward, whose temporary needs its place: it goes when its copy is done,
// ahead of 20, and comes back where its own update begins, when w's is gone. w's accumulates where
// the update that reads it begins: one stay, stored ahead of that.
TEST(Gradients, LeaveBehindTheirAccumulation) {
  const TwoGradients t;
  const Schedule s = t.schedule(0);
  ASSERT_EQ(s.tenants.size(), 2u);
  for (const Tenant& tenant : s.tenants) {
    EXPECT_EQ(tenant.kind, &kGradient);
    EXPECT_TRUE(tenant.has_own_home);
  }
  EXPECT_EQ(s.tenants[0].storage, TwoGradients::kV);
  EXPECT_EQ(s.tenants[0].previous, TwoGradients::kOldV);
  EXPECT_EQ(s.tenants[1].previous, TwoGradients::kOldW);
  EXPECT_EQ(label(t.trace, s, TenantId(std::size_t{0})), "gradient 0 (M)");
  EXPECT_EQ(text_of(s),
            "store:4@17+ evict:4@18+ store:6@27+ evict:6@32+ load:4@33+ await:4@33+ evict:4@36+");
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, s, &detail);
  EXPECT_EQ(detail.requested, testing::oracle_memory(t.trace, s).requested);
  EXPECT_EQ(detail.requested[0], 800);  // without the gradients of the step before
  EXPECT_EQ(replay(t.index, resident_schedule(t.index)).peak_requested, 2000);
  EXPECT_EQ(r.peak_requested, 1700);
  EXPECT_EQ(r.peak_event, EventId(20));
  EXPECT_EQ(r.d2h_bytes, 800);
  EXPECT_EQ(testing::oracle_time(t.index, s).time, detail.time);
}

// Nothing asks for its place: v's copy is done at 3300, which the next anchor sees at 4200, too
// late to be back for its update. Both go when the update is over and their copies are: w's is out
// from 4200 to 4700, the step's work ends at 4400.
TEST(Gradients, LeaveBehindTheirUpdateWhereThereIsRoom) {
  const TwoGradients t;
  const Schedule s = t.schedule({});
  EXPECT_EQ(text_of(s), "store:4@17+ store:6@27+ evict:4@36+ evict:6@37-");
  const ReplayResult r = replay(t.index, s);
  EXPECT_EQ(r.stall_ns, 300);
  EXPECT_EQ(r.step_ns, 4700);
}

// A tied weight's: made in M's backward (9), L's adds to it (17) and only then it is the
// parameter's (19). It does not leave beside L's temporary (14) before, for until then autograd
// holds it: it is stored behind L's backward (20) and gone when its update is over (25), where its
// copy is.
TEST(Gradients, AreHeldByAutogradUntilTheyHaveAccumulated) {
  MicroTrace t;
  const StorageId w = t.existing(500);
  t.free(t.gradient_before(w));
  t.begin_layer("L");
  t.begin_op();
  t.read(w);
  t.run(1000).end_op();
  t.end_layer("L");
  t.backward();
  t.begin_layer_backward("M");
  t.begin_op();
  const StorageId made = t.make_gradient(w);
  t.run(1000).end_op();
  t.end_layer_backward("M");
  t.begin_layer_backward("L");
  t.begin_op();
  const StorageId temporary = t.alloc(900, StorageClass::temporary);
  t.run(1000).end_op();
  t.free(temporary);
  t.begin_op();
  t.write(made);
  t.run(100).end_op();
  t.accumulate(w);
  t.end_layer_backward("L");
  t.optimizer();
  t.update(w, 1000);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Plan plan;
  plan.gradients = {{"*", GradientPlace::host}};
  plan.budget.automatic = 0;
  const auto lowered = lower(index, plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  EXPECT_EQ(text_of(lowered->schedule), "store:2@20+ evict:2@25+");
  EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
  EXPECT_TRUE(oracle_is_safe(trace, lowered->schedule));
}

// Without an optimizer they leave and stay at home.
TEST(Gradients, StayAtHomeWithoutAnUpdate) {
  const TwoGradients t(/*updates=*/false);
  const Schedule s = t.schedule(0);
  EXPECT_EQ(text_of(s), "store:4@17+ evict:4@18+ store:6@27+ evict:6@29-");
  const ReplayResult r = replay(t.index, s);
  EXPECT_EQ(r.h2d_bytes, 0);
  EXPECT_EQ(r.d2h_bytes, 800);
  EXPECT_EQ(r.peak_requested, 1700);
}

// What zero_grad would free is never there, and what the step makes is given up in it: nothing is
// handed on from one period to the next.
TEST(Gradients, AreNoPairOfTwoPeriods) {
  const TwoGradients t(true, true);
  const Schedule s = t.schedule(0);
  const AllocationSequence sequence = allocation_sequence(t.index, s);
  EXPECT_TRUE(sequence.carried.empty());
  EXPECT_TRUE(sequence.adopted.empty());
  EXPECT_TRUE(sequence.made_before.empty());
  EXPECT_TRUE(sequence.freed_behind.empty());
  EXPECT_TRUE(sequence.is_paired);
  EXPECT_EQ(allocation_sequence(t.index, resident_schedule(t.index)).carried.size(), 2u);
  const LiveRanges live = live_ranges(sequence, t.trace);
  for (const StorageId old : {TwoGradients::kOldV, TwoGradients::kOldW}) {
    EXPECT_EQ(live.of_slot[old.index()], -1);
  }
  EXPECT_EQ(live_bytes(live)[0], 2 * 512);  // both parameters
  const AllocatorReplay r = replay_allocator(t.index, s);
  EXPECT_TRUE(r.is_steady);
  EXPECT_EQ(r.peak_active, 4 * 512);
  EXPECT_EQ(replay_allocator(t.index, resident_schedule(t.index)).peak_active, 5 * 512);
}

// They are stored whether it updates or not; what is loaded for the update is left out.
TEST(Gradients, LeaveAStepThatSkipsItsUpdate) {
  const TwoGradients t;
  for (const std::optional<Bytes> budget : {std::optional<Bytes>(0), std::optional<Bytes>()}) {
    const Schedule s = t.schedule(budget);
    const auto made = skip_update(t.index, s);
    ASSERT_TRUE(made.ok()) << made.error().text();
    const StepIndex skipped(made->step);
    const auto hazards = check_skipped_update(t.index, s, skipped, made->schedule);
    EXPECT_TRUE(hazards.empty()) << hazards.front().text;
    const ReplayResult r = replay(skipped, made->schedule);
    EXPECT_EQ(r.d2h_bytes, 800);
    EXPECT_EQ(r.h2d_bytes, 0);
    EXPECT_TRUE(oracle_is_safe({{t.trace, s},
                                {skipped.trace(), made->schedule},
                                {skipped.trace(), made->schedule},
                                {t.trace, s}}));
  }
}

// Between the backwards of two micro-batches they are away as well, and what the second one adds is
// stored behind it.
TEST(Gradients, LeaveBetweenMicroBatches) {
  MicroTrace t;
  const StorageId w = t.existing(500);
  const StorageId old = t.gradient_before(w);
  t.free(old);
  StorageId made;
  for (int part = 0; part < 2; ++part) {
    if (part > 0) t.forward();
    t.begin_layer("L");
    t.begin_op();
    t.read(w);
    t.run(1000).end_op();
    t.end_layer("L");
    t.backward();
    t.begin_layer_backward("L");
    t.begin_op();
    if (part == 0) {
      made = t.make_gradient(w);
    } else {
      t.write(made);
    }
    t.run(1000).end_op();
    t.accumulate(w);
    t.end_layer_backward("L");
  }
  t.optimizer();
  t.update(w, 100);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Plan plan;
  plan.gradients = {{"L", GradientPlace::host}};
  plan.budget.automatic = 0;
  const auto lowered = lower(index, plan);
  ASSERT_TRUE(lowered.ok()) << lowered.error().text();
  const Schedule& s = lowered->schedule;
  // Backwards end at 2000 and 4000, the forward between them at 3000; the update ends at 4100,
  // ahead of the second copy out.
  EXPECT_EQ(text_of(s), "store:2@12+ evict:2@17+ load:2@19+ await:2@19+ store:2@23+ evict:2@29-");
  EXPECT_TRUE(find_hazards(index, s).empty());
  EXPECT_TRUE(oracle_is_safe(trace, s));
}

// Why one stays, by what the recording lacks or has.
TEST(Gradients, StayWhereTheRecordingSaysTooLittle) {
  const auto note_of = [](const auto& change, std::size_t notes = 1) {
    TwoGradients t;
    change(t.trace);
    const StepIndex index(t.trace);
    const std::string& reason = index.model_state_uses().reason_to_stay(TwoGradients::kV);
    Plan plan;
    plan.gradients = {{"M", GradientPlace::host}};
    const auto lowered = lower(index, plan);
    if (!lowered) return lowered.error().message;
    EXPECT_TRUE(lowered->schedule.tenants.empty());
    EXPECT_EQ(lowered->notes.size(), notes);
    EXPECT_EQ(lowered->notes.back().text, reason);
    EXPECT_EQ(subject_of(t.trace, lowered->notes.back()), "gradient of M (storage 4)");
    return reason;
  };
  const auto v = TwoGradients::kV.index();
  const auto old = TwoGradients::kOldV.index();
  EXPECT_EQ(note_of([&](Trace& t) { t.storages.free_event[v] = EventId(36); }),
            "the layer \"M\" matches no layer with gradients left at the step's end");
  EXPECT_EQ(note_of([&](Trace& t) { t.events.ref[16] = 0; }),
            "stays: the recording does not say when it has accumulated");
  for (const bool kept : {false, true}) {
    // One that is kept beside it says so itself.
    const auto change = [&](Trace& t) {
      if (kept) t.storages.free_event[old] = {};
      if (!kept) t.storages.parameter[old] = {};
    };
    EXPECT_EQ(note_of(change, kept ? 2 : 1),
              "stays: the step frees none as large of the same parameter ahead of it");
  }
  EXPECT_EQ(note_of([&](Trace& t) { t.storages.bytes[old] = 299; }),
            "stays: the step frees none as large of the same parameter ahead of it");
  EXPECT_EQ(note_of([&](Trace& t) {
              t.uses.op.emplace_back(std::size_t{0});
              t.uses.tensor.emplace_back(t.tensors.size());
              t.uses.mode.push_back(UseMode::read);
              t.tensors = [&] {
                Tensors all = t.tensors;
                all.storage.push_back(TwoGradients::kOldV);
                all.dtype.push_back(DType::float32);
                all.shape.push_back(all.shape[0]);
                all.strides.push_back(all.strides[0]);
                all.offset.push_back(0);
                all.producer.emplace_back();
                all.version.push_back(0);
                all.item_bytes.push_back(4);
                return all;
              }();
            }),
            "stays: the step uses the one of the step before");
}

// Each thing that the structure asks of one that is made anew.
TEST(Gradients, AreRefusedWhereTheyAreNotMadeInThePlaceOfOne) {
  const TwoGradients t;
  const auto refusal = [&](const auto& change) {
    Schedule s = t.schedule(0);
    change(s);
    std::string texts;
    for (const Hazard& hazard : find_hazards(t.index, s)) texts += hazard.text + "\n";
    return texts;
  };
  const auto has = [&](const std::string& texts, const char* wanted) {
    EXPECT_NE(texts.find(wanted), std::string::npos) << wanted << " in " << texts;
  };
  has(refusal([](Schedule& s) { s.tenants[0].previous = {}; }),
      "gradient 0 (M) takes the place of none");
  has(refusal([](Schedule& s) { s.tenants[0].previous = TwoGradients::kOldW; }),
      "gradient 0 (M) is not made in the place of one that the step frees");
  has(refusal([](Schedule& s) { s.tenants[0].previous = s.tenants[1].previous; }),
      "takes the place of what another one does, too");
  has(refusal([](Schedule& s) { s.tenants[0].has_own_home = false; }),
      "gradient 0 (M) takes another's place without a home");
  has(refusal([](Schedule& s) { s.stays[0].is_made = false; }), "gradient 0 (M) is not made once");
  has(refusal([&](Schedule& s) {
        // Back ahead of where the made one ends.
        testing::move_instruction(t.index, s, 4, {EventId(17), Side::after});
      }),
      "is loaded ahead of the made one's end");
}

// Any set of them: written as rules, as JSON, read back, resolved.
TEST(GradientRules, GiveEverySetBack) {
  const TwoGradients t;
  for (unsigned mask = 0; mask < 4; ++mask) {
    GradientDecisions decisions;
    decisions.at_home.assign(t.trace.storages.size(), false);
    decisions.at_home[TwoGradients::kW.index()] = (mask & 1U) != 0;
    decisions.at_home[TwoGradients::kV.index()] = (mask & 2U) != 0;
    Plan plan;
    plan.gradients = to_gradient_rules(t.trace, decisions);
    EXPECT_EQ(plan.gradients.empty(), mask == 0);
    const auto read = plan_from_json(plan_to_json(plan), "p.json");
    ASSERT_TRUE(read.ok()) << read.error().text();
    ASSERT_EQ(read->gradients, plan.gradients);
    const auto back = resolve(t.trace, *read);
    ASSERT_TRUE(back.ok()) << back.error().text();
    if (mask == 0) continue;
    EXPECT_EQ(back->gradients, decisions) << mask;
  }
  const auto wrong = resolve_gradients(t.trace, {{"*", GradientPlace::host}, {"N", {}}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().pointer, "/gradients/1/layer");
}

}  // namespace
}  // namespace stowage::simulator
