// A kind of tenant that production knows nothing of: a gradient, made in the step by an op, stored
// and evicted in backward, loaded back for the optimizer. Its row and its maker lie here; lowering,
// the hazard check, the replay, the memory curve and the allocator's sequence take it as they take
// any other.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/hazards/hazards.h"
#include "simulator/hazards/skipped_update_check.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/lowering/tenant_makers.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/departures.h"
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

std::string place_of_gradient(const Trace& trace, const Tenant& tenant) {
  const LayerId layer = trace.storages.layer[tenant.storage.index()];
  return trace.string(trace.layers.name[layer.index()]);
}

LayerId layer_of_gradient(const Trace& trace, const Tenant& tenant) {
  return trace.storages.layer[tenant.storage.index()];
}

// Every op that names it, from its begin to its end.
void list_gradient_uses(const ScheduleIndex& index, TenantId tenant, std::vector<TenantUse>& uses) {
  const Trace& trace = index.trace();
  const StorageId storage = index.schedule().tenants[tenant.index()].storage;
  for (std::size_t u = 0; u < trace.uses.size(); ++u) {
    if (trace.tensors.storage[trace.uses.tensor[u].index()] != storage) continue;
    TenantUse use;
    use.writes = trace.uses.mode[u] == UseMode::in_place;
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      if (trace.events.ref[e] != trace.uses.op[u].value) continue;
      if (trace.events.kind[e] == EventKind::op_begin) use.begin = EventId(e);
      if (trace.events.kind[e] == EventKind::op_end) use.end = EventId(e);
    }
    uses.push_back(use);
  }
}

void check_gradient(const ScheduleIndex& index, TenantId tenant, const ReportFlaw& report) {
  const auto stays = index.stays_of(tenant);
  const bool starts_made = !stays.empty() && index.schedule().stays[stays.front().index()].is_made;
  if (!starts_made) report("a gradient does not begin with the op that makes it", {});
}

const TenantKind kGradient{
    "gradient",         false,         false, place_of_gradient, layer_of_gradient,
    list_gradient_uses, check_gradient};

// Away between any two ops that use it, if that takes no longer than from anchor to anchor.
Result<Movement> gradients(const StepIndex& index, const Decisions& /*decisions*/,
                           const std::vector<bool>& taken) {
  const Trace& trace = index.trace();
  Movement movement;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::gradient || taken[s]) continue;
    Tenant tenant{&kGradient, StorageId(s), 0, trace.storages.bytes[s], 0, false, {}};
    movement.tenants.push_back(tenant);
    Schedule alone;
    alone.tenants = movement.tenants;
    const TenantId id(movement.tenants.size() - 1);
    std::vector<TenantUse> uses;
    list_gradient_uses(ScheduleIndex(index, alone), id, uses);
    for (std::size_t u = 0; u < uses.size(); ++u) {
      PlacedStay stay;
      stay.tenant = id;
      stay.is_made = u == 0;
      const EventId ahead = index.previous_anchor(EventId(uses[u].begin.index() - 1));
      if (!stay.is_made) stay.await = position_of({ahead, Side::after});
      stay.earliest_evict = position_of({index.next_anchor(uses[u].end), Side::after});
      stay.latest_evict = stay.earliest_evict;
      if (uses[u].writes) {
        stay.store = stay.earliest_evict;
        stay.latest_evict = period_of(index.event_count()) - 2;
      }
      movement.stays.push_back(std::move(stay));
    }
  }
  return movement;
}

// An activation x (800 bytes) saved by layer L, a gradient g (1000) made in its backward, a
// temporary (2000) in the backward of layer M, an optimizer that reads g; a parameter w (500). The
// link moves a byte a nanosecond; in brackets the time with the schedule below.
//    0 step_begin            1 forward L            2 op_begin
//    3 alloc x               4 pack x [1000]        5 op_end
//    6 forward end L [1800]  7 backward_begin       8 backward L
//    9 unpack x [2600]      10 free x              11 op_begin
//   12 alloc g              13 op_end [3600]       14 backward end L
//   15 backward M [4600]    16 op_begin            17 alloc temporary
//   18 op_end [5100]        19 free temporary      20 backward end M
//   21 backward_end         22 update w [6100]     23 op_begin
//   24 op_end [6200]        25 update end w        26 free g
//   27 step_end
// The model lets go of x at 4 and of g at 13. x's slot in the arena is free again when g needs it.
struct GradientStep {
  // `accumulates`: the op of layer M adds to g.
  explicit GradientStep(bool accumulates = false) : trace(make(accumulates)) {}

  static Trace make(bool accumulates) {
    MicroTrace t;
    const auto w = t.existing(500);
    t.begin_layer("L");
    t.begin_op();
    const auto x = t.alloc(800);
    const auto saved = t.run(1000).pack(x);
    t.let_go(x);
    t.end_op();
    t.run(800).end_layer("L");
    t.backward();
    t.begin_layer_backward("L");
    t.unpack(saved);
    t.free(x);
    t.begin_op();
    const auto g = t.alloc(1000, StorageClass::gradient);
    t.write(g);
    t.run(1000).end_op();
    t.let_go(g);
    t.end_layer_backward("L");
    t.run(400).begin_layer_backward("M");
    t.begin_op();
    const auto temporary = t.alloc(2000, StorageClass::temporary);
    t.write(temporary);
    if (accumulates) t.write(g);
    t.run(500).end_op();
    t.free(temporary);
    t.end_layer_backward("M");
    t.optimizer();
    t.run(300);
    t.update(w, 100);
    t.free(g);
    Trace out = t.finish();
    // update() opens an op of its own: it reads g too.
    out.uses.op.emplace_back(out.ops.size() - 1);
    out.uses.tensor.push_back(out.uses.tensor[0]);
    out.uses.mode.push_back(UseMode::read);
    return out;
  }

  Schedule make_schedule() {
    Schedule s;
    s.has_hooks = true;
    s.tenants = {{&kSavedTensor, StorageId(1), 0, 800, 0, false, {SavedId(std::size_t{0})}},
                 {&kGradient, StorageId(2), 0, 1000, 0, false, {}}};
    s.host_bytes = 1024;
    s.tenant_of = {kX};
    s.stay_of = {kBackX};
    s.stays.resize(4);
    for (const StayId made : {kMadeX, kMadeG}) {
      s.stays[made.index()].is_made = s.stays[made.index()].is_stored = true;
    }
    s.stays[kMadeX.index()].tenant = s.stays[kBackX.index()].tenant = kX;
    s.stays[kMadeG.index()].tenant = s.stays[kBackG.index()].tenant = kG;
    s.stays[kBackX.index()].unpacks = {UnpackId(std::size_t{0})};
    const auto add = [&](Action action, StayId stay, int event, Side side) {
      s.instructions.push_back({action, stay, index.anchor_at(EventId(event), side)});
    };
    add(Action::store, kMadeX, 4, Side::after);
    add(Action::evict, kMadeX, 6, Side::after);
    add(Action::load, kBackX, 8, Side::after);
    add(Action::await, kBackX, 9, Side::before);
    add(Action::evict, kBackX, 9, Side::after);
    add(Action::store, kMadeG, 14, Side::after);
    add(Action::evict, kMadeG, 15, Side::after);
    add(Action::load, kBackG, 20, Side::after);
    add(Action::await, kBackG, 22, Side::after);
    add(Action::evict, kBackG, 25, Side::after);
    return s;
  }

  std::size_t find(Action action, StayId stay) const {
    const auto& list = schedule.instructions;
    const auto at = std::find_if(list.begin(), list.end(), [&](const Instruction& i) {
      return i.action == action && i.stay == stay;
    });
    EXPECT_NE(at, list.end());
    return static_cast<std::size_t>(at - list.begin());
  }
  void erase(Action action, StayId stay) {
    schedule.instructions.erase(schedule.instructions.begin() +
                                static_cast<long>(find(action, stay)));
  }
  void move(Action action, StayId stay, int event, Side side) {
    testing::move_instruction(index, schedule, find(action, stay), {EventId(event), side});
  }
  // The text of the first hazard of this kind, the oracle agreeing that there is one.
  std::string refusal(HazardKind kind) const {
    EXPECT_FALSE(oracle_is_safe(trace, schedule));
    for (const Hazard& hazard : find_hazards(index, schedule)) {
      if (hazard.kind == kind && hazard.first == kG) return hazard.text;
    }
    return "no such hazard";
  }

  static constexpr TenantId kX{0};
  static constexpr TenantId kG{1};
  static constexpr StayId kMadeX{0};
  static constexpr StayId kMadeG{1};
  static constexpr StayId kBackX{2};
  static constexpr StayId kBackG{3};

  Trace trace;
  StepIndex index{trace};
  Schedule schedule = make_schedule();
};

TEST(ThirdKind, IsAcceptedAsItIs) {
  const GradientStep t;
  const auto hazards = find_hazards(t.index, t.schedule);
  EXPECT_TRUE(hazards.empty()) << hazards.front().text;
  EXPECT_TRUE(oracle_is_safe(t.trace, t.schedule));
  EXPECT_EQ(label(t.trace, t.schedule, GradientStep::kG), "gradient 1 (L)");
}

// x: out 1000..1800 beside 800 of compute, back 1800..2600 with nothing beside it: 800. g: out
// 3600..4600, 400 of it beside compute: 600; back 5100..6100, 300 of it beside compute: 700.
// Compute 1000 + 800 + 1000 + 400 + 500 + 300 + 100.
TEST(ThirdKind, TakesItsTime) {
  const GradientStep t;
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, t.schedule, &detail);
  EXPECT_EQ(r.compute_ns, 4100);
  EXPECT_EQ(r.stall_ns, 2100);
  EXPECT_EQ(r.step_ns, 6200);
  EXPECT_EQ(r.d2h_bytes, 1800);
  EXPECT_EQ(r.h2d_bytes, 1800);
  ASSERT_EQ(r.stalls.size(), 3u);
  EXPECT_EQ(r.stalls[1].stay, GradientStep::kMadeG);
  EXPECT_TRUE(r.stalls[1].is_store);
  EXPECT_EQ(r.stalls[1].event, EventId(15));
  EXPECT_EQ(r.stalls[1].start, 4000);
  EXPECT_EQ(r.stalls[1].duration, 600);
  EXPECT_EQ(r.stalls[2].stay, GradientStep::kBackG);
  EXPECT_FALSE(r.stalls[2].is_store);
  EXPECT_EQ(r.stalls[2].start, 5400);
  EXPECT_EQ(r.stalls[2].duration, 700);
  ASSERT_EQ(detail.transfers.size(), 4u);
  EXPECT_EQ(detail.transfers[2].start, 3600);
  EXPECT_EQ(detail.transfers[3].end, 6100);
  const auto oracle = testing::oracle_time(t.index, t.schedule);
  EXPECT_EQ(oracle.step_ns, r.step_ns);
  EXPECT_EQ(oracle.time, detail.time);
}

// w all the time; x from 3 to 6 and from 8 to 9; g from 12 to 15 and from 20 to 25; the temporary
// from 17 to 19, when g is away: 2500 instead of 3500. Of an event with instructions the most.
TEST(ThirdKind, TakesItsMemory) {
  const GradientStep t;
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, t.schedule, &detail);
  EXPECT_EQ(r.peak_requested, 2500);
  EXPECT_EQ(r.peak_event, EventId(17));
  EXPECT_EQ(replay(t.index, resident_schedule(t.index)).peak_requested, 3500);
  EXPECT_EQ(detail.requested,
            (std::vector<Bytes>{500,  500,  500,  1300, 1300, 1300, 1300, 500,  1300, 1300,
                                500,  500,  1500, 1500, 1500, 1500, 500,  2500, 2500, 500,
                                1500, 1500, 1500, 1500, 1500, 1500, 500,  500}));
  EXPECT_EQ(testing::oracle_memory(t.trace, t.schedule).requested, detail.requested);
  EXPECT_EQ(r.host_bytes, 1024);
}

// Where the schedule lets go: at the evictions but for x's buffer, which the unpack handed out.
TEST(ThirdKind, LeavesWhereItIsEvicted) {
  GradientStep t;
  const auto rows = departures(t.trace, t.schedule);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[2].storage, StorageId(2));
  EXPECT_EQ(rows[2].instruction, 6);
  EXPECT_EQ(rows[3].stay, GradientStep::kBackG);
  EXPECT_EQ(rows[3].instruction, 9);
  EXPECT_FALSE(rows[3].event.valid());
  // A model that holds g for longer holds its memory.
  t.trace.storages.natural_free_event[2] = EventId(18);
  const auto held = departures(t.trace, t.schedule);
  EXPECT_EQ(held[2].instruction, -1);
  EXPECT_EQ(held[2].event, EventId(18));
  EXPECT_EQ(replay(t.index, t.schedule).peak_requested, 3500);
}

// Storages w, x, g and the temporary are slots 0 to 3, the stays 4 to 7.
TEST(ThirdKind, AsksTheAllocator) {
  const GradientStep t;
  const AllocationSequence sequence = allocation_sequence(t.index, t.schedule);
  EXPECT_EQ(sequence.bytes, (std::vector<Bytes>{500, 800, 1000, 2000, 0, 0, 800, 1000}));
  std::string period;
  for (const AllocationSequence::Step& step : sequence.period) {
    period += (period.empty() ? "" : " ") + std::to_string(step.event.value) +
              (step.free ? "-" : "+") + std::to_string(step.slot);
  }
  EXPECT_EQ(period, "3+1 6-1 8+6 10-6 12+2 15-2 17+3 19-3 20+7 25-7");
  EXPECT_EQ(sequence.lasting, (std::vector<AllocationSequence::Slot>{0}));
  EXPECT_TRUE(sequence.carried.empty());
  EXPECT_TRUE(sequence.freed_behind.empty());
  EXPECT_TRUE(sequence.is_paired);
}

// With a kind of its own in the table of makers lower() gives the schedule above. Nothing but the
// budget drives g out as early: its copy is done at 3800 of the resident step, behind M, and the
// temporary needs its room at 17. Back it comes once the temporary is gone. The plan names where x
// comes back; it leaves when its copy is done, at 1800.
TEST(ThirdKind, IsLoweredAsItIs) {
  const GradientStep t;
  const TenantMaker makers[] = {tenant_makers()[0], gradients, tenant_makers()[1]};
  Decisions decisions = testing::offload_all(t.trace);
  decisions.budget = 2600;
  auto& reload = decisions.saved[0].reload;
  reload.kind = ReloadPoint::Kind::point;
  reload.point.phase = ProgramPoint::Phase::backward;
  reload.point.layer = "L";
  const auto lowered = lower(t.index, decisions, makers);
  ASSERT_TRUE(lowered.ok());
  const Schedule& s = lowered->schedule;
  ASSERT_EQ(s.stays.size(), t.schedule.stays.size());
  // In a lowered schedule the stays of a kind are neighbours.
  const StayId expected[] = {GradientStep::kMadeX, GradientStep::kBackX, GradientStep::kMadeG,
                             GradientStep::kBackG};
  ASSERT_EQ(s.instructions.size(), t.schedule.instructions.size());
  for (std::size_t i = 0; i < s.instructions.size(); ++i) {
    const Instruction& made = s.instructions[i];
    const Instruction& by_hand = t.schedule.instructions[i];
    EXPECT_EQ(made.action, by_hand.action) << i;
    EXPECT_EQ(expected[made.stay.index()], by_hand.stay) << i;
    EXPECT_EQ(made.anchor.event, by_hand.anchor.event) << i;
    EXPECT_EQ(made.anchor.side, by_hand.anchor.side) << i;
  }
  EXPECT_EQ(s.host_bytes, t.schedule.host_bytes);
  EXPECT_TRUE(find_hazards(t.index, s).empty());
  EXPECT_EQ(replay(t.index, s).step_ns, 6200);
  // With room for all of it g has no time to be away: its stays are one.
  decisions.budget.reset();
  const auto roomy = lower(t.index, decisions, makers);
  ASSERT_TRUE(roomy.ok());
  EXPECT_EQ(roomy->schedule.stays.size(), 3u);
  EXPECT_TRUE(find_hazards(t.index, roomy->schedule).empty());
}

// Whatever the budget and the link, what is made is safe, and within the budget where the tightest
// one is. On the slow link the copy out of g is not done when g is used again.
TEST(ThirdKind, IsLoweredSafelyWithinAnyBudget) {
  const TenantMaker makers[] = {tenant_makers()[0], gradients, tenant_makers()[1]};
  for (const bool accumulates : {false, true}) {
    for (const std::int64_t megabytes : {100, 1000, 100'000}) {
      GradientStep t(accumulates);
      t.trace.calibration.d2h = t.trace.calibration.h2d = testing::flat_link(megabytes * 1'000'000);
      Decisions decisions = testing::offload_all(t.trace);
      decisions.budget = 0;
      const auto tight = lower(t.index, decisions, makers);
      ASSERT_TRUE(tight.ok());
      const Bytes least = replay(t.index, tight->schedule).peak_requested;
      EXPECT_EQ(least, accumulates ? 3500 : 2500);
      for (Bytes budget = 0; budget <= 4000; budget += 100) {
        decisions.budget = budget;
        const auto lowered = lower(t.index, decisions, makers);
        ASSERT_TRUE(lowered.ok());
        const auto hazards = find_hazards(t.index, lowered->schedule);
        EXPECT_TRUE(hazards.empty()) << budget << ": " << hazards.front().text;
        EXPECT_TRUE(oracle_is_safe(t.trace, lowered->schedule)) << budget;
        const Bytes peak = replay(t.index, lowered->schedule).peak_requested;
        EXPECT_LE(peak, std::max(budget, least));
        EXPECT_EQ(testing::oracle_memory(t.trace, lowered->schedule).peak, peak);
      }
    }
  }
}

TEST(ThirdKind, AnAwaitLeftOut) {
  GradientStep t;
  t.erase(Action::await, GradientStep::kBackG);
  EXPECT_EQ(t.refusal(HazardKind::used_while_away),
            "gradient 1 (L) is used at event 23 without being on the device, or without waiting "
            "for its load");
  EXPECT_EQ(t.refusal(HazardKind::malformed), "stay 3 of gradient 1 (L) has no await");
}

TEST(ThirdKind, ALoadAheadOfTheStoresEnd) {
  GradientStep t;
  t.move(Action::load, GradientStep::kBackG, 14, Side::after);
  EXPECT_EQ(t.refusal(HazardKind::load_before_store_finished),
            "the load of gradient 1 (L) at event 14 may read host slot [0, 1000) before the store "
            "has written it");
}

TEST(ThirdKind, AnEvictAheadOfAUse) {
  GradientStep t;
  t.move(Action::evict, GradientStep::kBackG, 22, Side::after);
  EXPECT_NE(t.refusal(HazardKind::used_while_away).find("gradient 1 (L) is used at event 23"),
            std::string::npos);
  GradientStep made;
  made.move(Action::store, GradientStep::kMadeG, 8, Side::after);
  made.move(Action::evict, GradientStep::kMadeG, 8, Side::after);
  EXPECT_NE(made.refusal(HazardKind::update_lost), "no such hazard");
}

// No snapshot: what is added to it behind the store is lost, also while the model still holds it.
TEST(ThirdKind, AWriteBehindTheStore) {
  GradientStep t(true);
  t.move(Action::evict, GradientStep::kMadeG, 20, Side::before);
  EXPECT_EQ(t.refusal(HazardKind::update_lost),
            "gradient 1 (L) is updated behind the start of its store at event 18");
  EXPECT_NE(t.refusal(HazardKind::written_while_copied).find("gradient 1 (L)"), std::string::npos);
  // Stored behind the addition it is right.
  t.move(Action::evict, GradientStep::kMadeG, 22, Side::before);
  t.move(Action::store, GradientStep::kMadeG, 20, Side::after);
  t.move(Action::load, GradientStep::kBackG, 22, Side::before);
  const auto hazards = find_hazards(t.index, t.schedule);
  EXPECT_TRUE(hazards.empty()) << hazards.front().text;
  EXPECT_TRUE(oracle_is_safe(t.trace, t.schedule));
}

// The slot is x's until x is back.
TEST(ThirdKind, ASlotSharedTooEarly) {
  GradientStep t;
  t.move(Action::load, GradientStep::kBackX, 4, Side::after);
  t.move(Action::store, GradientStep::kMadeG, 4, Side::after);
  EXPECT_FALSE(oracle_is_safe(t.trace, t.schedule));
  const auto hazards = find_hazards(t.index, t.schedule);
  EXPECT_TRUE(std::any_of(hazards.begin(), hazards.end(), [](const Hazard& h) {
    return h.kind == HazardKind::host_slot_overwritten && h.second == GradientStep::kG;
  }));
}

// The optimizer changes g, so it is stored a second time; what else is stored into its slot between
// its first store and its load is no less wrong for that.
TEST(ThirdKind, StoredTwiceItsSlotIsItsOwnFromTheFirstStoreOn) {
  GradientStep t;
  t.trace.uses.mode.back() = UseMode::in_place;
  t.schedule.stays[GradientStep::kBackG.index()].is_stored = true;
  auto& list = t.schedule.instructions;
  list.insert(list.end() - 1,
              {Action::store, GradientStep::kBackG, t.index.anchor_at(EventId(25), Side::after)});
  EXPECT_TRUE(find_hazards(t.index, t.schedule).empty());
  EXPECT_TRUE(oracle_is_safe(t.trace, t.schedule));
  // The temporary leaves behind its op, into the same bytes, then into others.
  const StayId temporary(t.schedule.stays.size());
  t.schedule.tenants.push_back({&kGradient, StorageId(3), 0, 2000, 0, false, {}});
  t.schedule.host_bytes = 3072;
  t.schedule.stays.push_back({TenantId(2), true, true, false, CopyMode::lane, CopyMode::lane, {}});
  const auto at = list.begin() + static_cast<long>(t.find(Action::load, GradientStep::kBackG));
  const Anchor anchor = t.index.anchor_at(EventId(20), Side::before);
  list.insert(at, {{Action::store, temporary, anchor}, {Action::evict, temporary, anchor}});
  EXPECT_EQ(t.refusal(HazardKind::host_slot_overwritten),
            "gradient 2 (M) writes host slot [0, 2000) at event 20 before gradient 1 (L) was read "
            "back from host slot [0, 1000)");
  t.schedule.tenants[2].host_offset = 1024;
  EXPECT_TRUE(find_hazards(t.index, t.schedule).empty());
  EXPECT_TRUE(oracle_is_safe(t.trace, t.schedule));
}

// The model may hold the made bytes while a loaded stay is written: nothing is lost with them.
TEST(ThirdKind, WhatTheModelHoldsMayBeOlder) {
  GradientStep t;
  t.trace.uses.mode.back() = UseMode::in_place;
  t.trace.storages.natural_free_event[2] = EventId(24);
  t.schedule.stays[GradientStep::kBackG.index()].is_stored = true;
  auto& list = t.schedule.instructions;
  list.insert(list.end() - 1,
              {Action::store, GradientStep::kBackG, t.index.anchor_at(EventId(25), Side::after)});
  const auto hazards = find_hazards(t.index, t.schedule);
  EXPECT_TRUE(hazards.empty()) << hazards.front().text;
  EXPECT_TRUE(oracle_is_safe(t.trace, t.schedule));
}

// Without the update, events 22 to 25, step_end is event 23. What was loaded for it goes there.
TEST(ThirdKind, SkipsTheUpdate) {
  const GradientStep t;
  const auto made = skip_update(t.index, t.schedule);
  ASSERT_TRUE(made.ok());
  const StepIndex skipped(made->step);
  const auto hazards = check_skipped_update(t.index, t.schedule, skipped, made->schedule);
  EXPECT_TRUE(hazards.empty()) << hazards.front().text;
  ASSERT_EQ(made->schedule.instructions.size(), t.schedule.instructions.size());
  EXPECT_EQ(made->shared, 8U);
  EXPECT_EQ(made->schedule.instructions[8].action, Action::await);
  EXPECT_EQ(made->schedule.instructions[9].action, Action::evict);
  EXPECT_EQ(made->schedule.instructions[9].anchor.event, EventId(23));
}

// g leaves behind the update that reads it. Its bytes are of backward, whatever the update does, so
// they are stored without it, too.
TEST(ThirdKind, IsStoredWithoutTheUpdate) {
  GradientStep t;
  for (const Action action : {Action::load, Action::await, Action::evict}) {
    t.erase(action, GradientStep::kBackG);
  }
  t.schedule.stays.pop_back();
  t.move(Action::store, GradientStep::kMadeG, 22, Side::after);
  t.move(Action::evict, GradientStep::kMadeG, 25, Side::after);
  ASSERT_TRUE(find_hazards(t.index, t.schedule).empty());
  const auto made = skip_update(t.index, t.schedule);
  ASSERT_TRUE(made.ok());
  const StepIndex skipped(made->step);
  const auto hazards = check_skipped_update(t.index, t.schedule, skipped, made->schedule);
  EXPECT_TRUE(hazards.empty()) << hazards.front().text;
  EXPECT_TRUE(made->schedule.stays[GradientStep::kMadeG.index()].is_stored);
  ASSERT_EQ(made->schedule.instructions.size(), t.schedule.instructions.size());
  EXPECT_EQ(made->schedule.instructions[5].action, Action::store);
  EXPECT_EQ(made->schedule.instructions[5].anchor.event, EventId(23));
  EXPECT_TRUE(testing::oracle_is_safe({{t.trace, t.schedule},
                                       {skipped.trace(), made->schedule},
                                       {skipped.trace(), made->schedule},
                                       {t.trace, t.schedule}}));
}

TEST(ThirdKind, TheCheckAgreesWithTheOracleOnDamage) {
  int safe = 0;
  int unsafe = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const GradientStep t(seed % 2 == 1);
    const Schedule schedule = testing::ScheduleDamage(t.index, t.schedule, seed).run_on_all();
    const auto hazards = find_hazards(t.index, schedule);
    const auto unordered = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& h) {
      return h.kind != HazardKind::malformed;
    });
    ASSERT_EQ(unordered == hazards.end(), oracle_is_safe(t.trace, schedule))
        << "seed " << seed << ": "
        << (unordered == hazards.end() ? "nothing found" : unordered->text);
    ++(unordered == hazards.end() ? safe : unsafe);
  }
  EXPECT_GT(safe, 200);
  EXPECT_GT(unsafe, 800);
}

}  // namespace
}  // namespace stowage::simulator
