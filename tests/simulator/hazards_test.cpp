#include "simulator/hazards/hazards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simulator/lowering/lowering.h"
#include "simulator/lowering/schedule_builder.h"
#include "simulator/replay/replay.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// Two storages a and b, packed in this order, unpacked b first: the usual shape of a step.
//   0 step_begin  1 alloc a  2 pack a  3 alloc b  4 pack b  5 backward_begin
//   6 unpack b    7 unpack a  8 free b  9 free a  10 step_end
struct TwoTensors {
  Trace trace = [] {
    MicroTrace t;
    const auto a = t.alloc(1024);
    const auto sa = t.pack(a);
    t.let_go(a);
    const auto b = t.alloc(512);
    const auto sb = t.pack(b);
    t.let_go(b);
    t.backward();
    t.run(5000);
    t.unpack(sb);
    t.run(5000);
    t.unpack(sa);
    t.free(b);
    t.free(a);
    return t.finish();
  }();
  StepIndex index{trace};
  Schedule schedule = lower(index, testing::offload_all(trace))->schedule;

  [[nodiscard]] Instruction& find(Action action, std::int32_t row) {
    for (Instruction& i : schedule.instructions) {
      const bool leaves = action == Action::start_offload || action == Action::release;
      if (i.action == action && (leaves ? i.offload.value : i.reload.value) == row) return i;
    }
    ADD_FAILURE() << "no such instruction";
    return schedule.instructions.front();
  }
  void erase(Action action, std::int32_t row) {
    const Instruction* at = &find(action, row);
    schedule.instructions.erase(schedule.instructions.begin() +
                                (at - schedule.instructions.data()));
  }
  // Takes the instruction out and puts it in again at the place, as the last one there.
  void move(Action action, std::int32_t row, EventId event, Side side) {
    Instruction i = find(action, row);
    erase(action, row);
    i.anchor = index.anchor_at(event, side);
    auto& list = schedule.instructions;
    const auto at = std::find_if(list.begin(), list.end(), [&](const Instruction& other) {
      return Place{event, side} < Place{other.anchor.event, other.anchor.side};
    });
    list.insert(at, i);
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
  for (const Action action : {Action::start_offload, Action::release, Action::start_reload,
                              Action::await, Action::drop}) {
    for (const std::int32_t row : {0, 1}) {
      TwoTensors t;
      t.erase(action, row);
      EXPECT_TRUE(t.has(HazardKind::malformed)) << name_of(action) << " " << row;
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

// Reload 0 is b's (unpacked first), reload 1 is a's; offload 0 is a's.
TEST(Hazards, ReloadAheadOfTheRelease) {
  TwoTensors t;
  t.move(Action::release, 0, EventId(6), Side::before);  // a leaves at the first unpack
  EXPECT_TRUE(find_hazards(t.index, t.schedule).empty());
  t.move(Action::start_reload, 1, EventId(4), Side::after);  // and is fetched before that
  EXPECT_TRUE(t.has(HazardKind::reload_before_offload_finished));
  const auto hazards = find_hazards(t.index, t.schedule);
  const auto hazard = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& h) {
    return h.kind == HazardKind::reload_before_offload_finished;
  });
  EXPECT_EQ(hazard->first, OffloadId(std::size_t{0}));
  EXPECT_EQ(hazard->event, EventId(4));
  EXPECT_EQ(hazard->text,
            "the reload of offload 0 (step#0) at event 4 may read host slot [0, 1024) before the "
            "copy out has written it");
}

TEST(Hazards, AwaitBehindTheUnpack) {
  TwoTensors t;
  t.move(Action::await, 0, EventId(6), Side::after);
  EXPECT_TRUE(t.has(HazardKind::buffer_used_before_reload));
}

// Waiting for a later copy of the same lane is waiting for the earlier one too: still malformed,
// but no unordered pair.
TEST(Hazards, LanesAreFifo) {
  TwoTensors t;
  t.move(Action::start_reload, 0, EventId(5 - 1), Side::after);
  t.erase(Action::await, 0);
  EXPECT_TRUE(t.has(HazardKind::malformed));
  EXPECT_TRUE(t.has(HazardKind::buffer_used_before_reload));
  TwoTensors early;
  early.move(Action::start_reload, 1, EventId(4), Side::after);
  early.move(Action::start_reload, 0, EventId(4), Side::after);
  early.move(Action::await, 1, EventId(7), Side::before);
  EXPECT_FALSE(early.has(HazardKind::buffer_used_before_reload));
}

TEST(Hazards, OverlappingHostSlots) {
  TwoTensors t;
  ASSERT_EQ(t.schedule.offloads[1].host_offset, 1024);
  t.schedule.offloads[1].host_offset = 512;
  EXPECT_TRUE(t.has(HazardKind::host_slot_overwritten));
}

TEST(Hazards, TablesThatDoNotFit) {
  TwoTensors t;
  t.schedule.offload_of.pop_back();
  EXPECT_TRUE(t.has(HazardKind::malformed));
  TwoTensors far;
  far.schedule.offloads[0].host_offset = 1 << 20;
  EXPECT_TRUE(far.has(HazardKind::malformed));
  TwoTensors unaligned;
  unaligned.schedule.offloads[1].host_offset += 4;
  unaligned.schedule.host_bytes += 512;
  EXPECT_TRUE(unaligned.has(HazardKind::malformed));
  TwoTensors unserved;
  unserved.schedule.reload_of[0] = ReloadId();
  EXPECT_TRUE(unserved.has(HazardKind::malformed));
  TwoTensors dangling;
  dangling.schedule.instructions[0].offload = OffloadId(77);
  EXPECT_TRUE(dangling.has(HazardKind::malformed));
  TwoTensors nowhere;
  nowhere.schedule.instructions[0].anchor.event = EventId(1);  // an alloc
  EXPECT_TRUE(nowhere.has(HazardKind::malformed));
  TwoTensors swapped;
  std::swap(swapped.schedule.instructions.front(), swapped.schedule.instructions.back());
  EXPECT_TRUE(swapped.has(HazardKind::malformed));
  TwoTensors short_copy;
  short_copy.schedule.offloads[0].bytes -= 4;
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
class Damage {
 public:
  Damage(const StepIndex& index, Schedule schedule, std::uint64_t seed)
      : index_(index), s_(std::move(schedule)), engine_(seed * 31 + 5) {}

  Schedule run() {
    const int times = below(3) + 1;
    for (int i = 0; i < times; ++i) once();
    return std::move(s_);
  }

 private:
  int below(std::size_t n) { return static_cast<int>(engine_() % n); }

  void once() {
    auto& list = s_.instructions;
    if (list.empty()) return;
    const auto at = static_cast<std::size_t>(below(list.size()));
    switch (below(5)) {
      case 0:
        list.erase(list.begin() + static_cast<long>(at));
        break;
      case 1: {
        Offload& o = s_.offloads[static_cast<std::size_t>(below(s_.offloads.size()))];
        o.host_offset = below(static_cast<std::size_t>(s_.host_bytes / 512 + 1)) * 512;
        break;
      }
      case 2: {
        Reload* r = s_.reloads.empty()
                        ? nullptr
                        : &s_.reloads[static_cast<std::size_t>(below(s_.reloads.size()))];
        if (r != nullptr) r->copy_in = static_cast<CopyMode>(below(3));
        break;
      }
      default:
        move(at);
        break;
    }
  }

  // To another anchor, in order.
  void move(std::size_t at) {
    auto& list = s_.instructions;
    Instruction i = list[at];
    list.erase(list.begin() + static_cast<long>(at));
    const EventId event = index_.next_anchor(EventId(below(index_.event_count())));
    i.anchor = index_.anchor_at(event, below(2) == 0 ? Side::before : Side::after);
    const auto place = std::find_if(list.begin(), list.end(), [&](const Instruction& other) {
      return Place{i.anchor.event, i.anchor.side} < Place{other.anchor.event, other.anchor.side};
    });
    list.insert(place, i);
  }

  const StepIndex& index_;
  Schedule s_;
  std::mt19937_64 engine_;
};

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
      ASSERT_EQ(!unordered, testing::oracle_is_safe(index, schedule))
          << "seed " << seed << (damaged ? " damaged: " : ": ")
          << (hazards.empty() ? "" : hazards.front().text);
      ++(unordered ? unsafe : safe);
      if (!damaged) {
        ASSERT_TRUE(hazards.empty());
      }
    };
    check(lowered->schedule, false);
    for (std::uint64_t i = 0; i < 3; ++i) {
      check(Damage(index, lowered->schedule, seed * 3 + i).run(), true);
    }
  }
  EXPECT_GT(safe, 1500);  // the undamaged ones, and damage that does no harm
  EXPECT_GT(unsafe, 1000);
}

}  // namespace
}  // namespace stowage::simulator
