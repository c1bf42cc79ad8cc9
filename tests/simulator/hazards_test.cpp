#include "simulator/hazards/hazards.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_damage.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// Two storages a and b, packed in this order, unpacked b first: the usual shape of a step.
//   0 step_begin  1 alloc a  2 pack a  3 alloc b  4 pack b  5 backward_begin
//   6 unpack b    7 unpack a  8 free b  9 free a  10 step_end
// The rows of its stays: both leave as they were packed, b comes back first.
constexpr StayId kLeavesA(std::size_t{0});
constexpr StayId kLeavesB(std::size_t{1});
constexpr StayId kReloadsB(std::size_t{2});
constexpr StayId kReloadsA(std::size_t{3});

struct TwoTensors {
  Trace trace = testing::two_offloadable(1024, 512);
  StepIndex index{trace};
  Schedule schedule = lower(index, testing::offload_all(trace))->schedule;

  [[nodiscard]] Instruction& find(Action action, StayId stay) {
    for (Instruction& i : schedule.instructions) {
      if (i.action == action && i.stay == stay) return i;
    }
    ADD_FAILURE() << "no such instruction";
    return schedule.instructions.front();
  }
  void erase(Action action, StayId stay) {
    const Instruction* at = &find(action, stay);
    schedule.instructions.erase(schedule.instructions.begin() +
                                (at - schedule.instructions.data()));
  }
  // Takes the instruction out and puts it in again at the place, as the last one there.
  void move(Action action, StayId stay, EventId event, Side side) {
    const auto row = &find(action, stay) - schedule.instructions.data();
    testing::move_instruction(index, schedule, static_cast<std::size_t>(row), {event, side});
  }
  [[nodiscard]] bool has(HazardKind kind) const {
    const auto hazards = find_hazards(index, schedule);
    return std::any_of(hazards.begin(), hazards.end(),
                       [&](const Hazard& h) { return h.kind == kind; });
  }
};

TEST(Hazards, AcceptsWhatLoweringMakes) {
  const TwoTensors t;
  EXPECT_TRUE(find_hazards(t.index, t.schedule).empty());
  EXPECT_TRUE(find_hazards(t.index, resident_schedule(t.index)).empty());
}

TEST(Hazards, EachInstructionIsNeeded) {
  for (const StayId stay : {kLeavesA, kLeavesB, kReloadsB, kReloadsA}) {
    const bool leaves = stay == kLeavesA || stay == kLeavesB;
    for (const Action action : leaves ? std::vector{Action::store, Action::evict}
                                      : std::vector{Action::load, Action::await, Action::evict}) {
      TwoTensors t;
      t.erase(action, stay);
      EXPECT_TRUE(t.has(HazardKind::malformed)) << name_of(action) << " " << stay.value;
    }
  }
}

TEST(Hazards, AnInstructionTwice) {
  for (std::size_t i = 0; i < 10; ++i) {
    TwoTensors t;
    ASSERT_EQ(t.schedule.instructions.size(), 10u);
    const Instruction copy = t.schedule.instructions[i];
    t.schedule.instructions.insert(t.schedule.instructions.begin() + static_cast<long>(i), copy);
    EXPECT_TRUE(t.has(HazardKind::malformed)) << i;
  }
}

TEST(Hazards, ReloadAheadOfTheRelease) {
  TwoTensors t;
  t.move(Action::evict, kLeavesA, EventId(6), Side::before);  // a leaves at the first unpack
  EXPECT_TRUE(find_hazards(t.index, t.schedule).empty());
  t.move(Action::load, kReloadsA, EventId(4), Side::after);  // and is fetched before that
  EXPECT_TRUE(t.has(HazardKind::load_before_store_finished));
  const auto hazards = find_hazards(t.index, t.schedule);
  const auto hazard = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& h) {
    return h.kind == HazardKind::load_before_store_finished;
  });
  EXPECT_EQ(hazard->first, TenantId(std::size_t{0}));
  EXPECT_EQ(hazard->event, EventId(4));
  EXPECT_EQ(
      hazard->text,
      "the load of saved tensor 0 (step#0) at event 4 may read host slot [0, 1024) before the "
      "store has written it");
}

TEST(Hazards, AwaitBehindTheUnpack) {
  TwoTensors t;
  t.move(Action::await, kReloadsB, EventId(6), Side::after);
  EXPECT_TRUE(t.has(HazardKind::used_while_away));
}

// Waiting for a later copy of the same lane is waiting for the earlier one too: still malformed,
// but no unordered pair.
TEST(Hazards, LanesAreFifo) {
  TwoTensors t;
  t.move(Action::load, kReloadsB, EventId(5 - 1), Side::after);
  t.erase(Action::await, kReloadsB);
  EXPECT_TRUE(t.has(HazardKind::malformed));
  EXPECT_TRUE(t.has(HazardKind::used_while_away));
  TwoTensors early;
  early.move(Action::load, kReloadsA, EventId(4), Side::after);
  early.move(Action::load, kReloadsB, EventId(4), Side::after);
  early.move(Action::await, kReloadsA, EventId(7), Side::before);
  EXPECT_FALSE(early.has(HazardKind::used_while_away));
}

TEST(Hazards, OverlappingHostSlots) {
  TwoTensors t;
  ASSERT_EQ(t.schedule.tenants[1].host_offset, 1024);
  t.schedule.tenants[1].host_offset = 512;
  EXPECT_TRUE(t.has(HazardKind::host_slot_overwritten));
}

TEST(Hazards, TablesThatDoNotFit) {
  TwoTensors t;
  t.schedule.tenant_of.pop_back();
  EXPECT_TRUE(t.has(HazardKind::malformed));
  TwoTensors far;
  far.schedule.tenants[0].host_offset = 1 << 20;
  EXPECT_TRUE(far.has(HazardKind::malformed));
  TwoTensors unaligned;
  unaligned.schedule.tenants[1].host_offset += 4;
  unaligned.schedule.host_bytes += 512;
  EXPECT_TRUE(unaligned.has(HazardKind::malformed));
  TwoTensors unserved;
  unserved.schedule.stay_of[0] = StayId();
  EXPECT_TRUE(unserved.has(HazardKind::malformed));
  TwoTensors dangling;
  dangling.schedule.instructions[0].stay = StayId(77);
  EXPECT_TRUE(dangling.has(HazardKind::malformed));
  TwoTensors nowhere;
  nowhere.schedule.instructions[0].anchor.event = EventId(1);  // an alloc
  EXPECT_TRUE(nowhere.has(HazardKind::malformed));
  TwoTensors swapped;
  std::swap(swapped.schedule.instructions.front(), swapped.schedule.instructions.back());
  EXPECT_TRUE(swapped.has(HazardKind::malformed));
  TwoTensors short_copy;
  short_copy.schedule.tenants[0].bytes -= 4;
  EXPECT_TRUE(short_copy.has(HazardKind::malformed));
}

// A storage that is written after its pack while the copy may still run: 1000 bytes take 1000 ns,
// the write comes after 10.
TEST(Hazards, WriteWhileTheCopyReads) {
  MicroTrace t;
  const auto a = t.alloc(1000);
  const auto saved = t.pack(a);
  t.let_go(a);
  t.run(10);
  t.begin_op("aten::zero_");
  t.write(a);
  t.end_op();
  t.backward();
  t.begin_layer_backward("x");
  t.end_layer_backward("x");
  t.free(a);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  auto lowered = lower(index, testing::offload_all(trace));
  ASSERT_TRUE(lowered.ok());
  // Nobody unpacks it, so it may leave, but no later than its own pack: the write comes next.
  auto& list = lowered->schedule.instructions;
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].anchor.event, trace.saved.event[saved.index()]);
  EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
  const EventId later = index.next_anchor(EventId(list[1].anchor.event.value + 1));
  list[1].anchor = index.anchor_at(later, Side::after);
  const auto hazards = find_hazards(index, lowered->schedule);
  ASSERT_EQ(hazards.size(), 1u);
  EXPECT_EQ(hazards[0].kind, HazardKind::written_while_copied);
}

// Random schedules, random damage: the check and the oracle agree on every one.
TEST(Hazards, AgreesWithTheOracleOnDamagedSchedules) {
  int safe = 0;
  int unsafe = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const Trace trace = testing::random_trace(seed, {static_cast<int>(2 + seed % 5), false});
    const StepIndex index(trace);
    const auto lowered = lower(index, testing::random_decisions(trace, seed));
    ASSERT_TRUE(lowered.ok());
    const auto check = [&](const Schedule& schedule, bool damaged) {
      const auto hazards = find_hazards(index, schedule);
      const bool unordered = std::any_of(hazards.begin(), hazards.end(), [](const Hazard& h) {
        return h.kind != HazardKind::malformed;
      });
      ASSERT_EQ(!unordered, testing::oracle_is_safe(trace, schedule))
          << "seed " << seed << (damaged ? " damaged: " : ": ")
          << (hazards.empty() ? "" : hazards.front().text);
      ++(unordered ? unsafe : safe);
      if (!damaged) {
        ASSERT_TRUE(hazards.empty());
      }
    };
    check(lowered->schedule, false);
    for (std::uint64_t i = 0; i < 3; ++i) {
      check(testing::ScheduleDamage(index, lowered->schedule, seed * 3 + i).run(), true);
    }
  }
  EXPECT_GT(safe, 1500);  // the undamaged ones, and damage that does no harm
  EXPECT_GT(unsafe, 1000);
}

}  // namespace
}  // namespace stowage::simulator
