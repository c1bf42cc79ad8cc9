// Planned memory whose ranges share bytes: proven, or refused with the pair named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/hazards/hazards.h"
#include "simulator/hazards/shared_memory_check.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/live_ranges.h"
#include "simulator/placement/placement.h"
#include "simulator/placement/placement_check.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using ::testing::HasSubstr;
using testing::MicroTrace;

constexpr Bytes kOnePage = 1024;

using Pairs = std::set<std::pair<std::int32_t, std::int32_t>>;

// a and b leave behind their packs; b comes back first, then a. One page each.
struct TwoOffloaded {
  StorageId a{0};
  StorageId b{1};
  Trace trace = testing::two_offloadable(kOnePage, kOnePage);
  StepIndex index{trace};
  Schedule schedule = lower(index, testing::offload_all(trace))->schedule;
  LiveRanges live = live_ranges(allocation_sequence(index, schedule), trace);
  DevicePlacement placement = place(live, kOnePage);

  [[nodiscard]] std::int32_t range(StorageId storage) const {
    return live.of_slot[storage.index()];
  }
  [[nodiscard]] std::int32_t buffer_of(StorageId storage) const {
    for (std::size_t i = 0; i < schedule.stays.size(); ++i) {
      const bool is_its = schedule.tenant(StayId(i)).storage == storage;
      if (is_its && !schedule.stays[i].is_made) {
        return live.of_slot[trace.storages.size() + i];
      }
    }
    return -1;
  }
  // Its only page is that of the other.
  void put(std::int32_t range, std::int32_t other) {
    std::vector<std::pair<std::size_t, std::int32_t>> pages;
    for (std::size_t r = 0; r < live.ranges.size(); ++r) {
      const auto from = static_cast<std::size_t>(
          r == static_cast<std::size_t>(range) ? other : static_cast<std::int32_t>(r));
      pages.emplace_back(r, placement.pages_of[from].front());
    }
    placement.pages_of = Grouped<std::int32_t>(live.ranges.size(), pages);
  }
  [[nodiscard]] std::vector<Hazard> check() const {
    return shared_memory_hazards(index, schedule, live, placement);
  }
};

TEST(SharedMemory, WhatComesBehindTheOtherMayHaveItsBytes) {
  TwoOffloaded t;
  EXPECT_TRUE(t.check().empty());
  t.put(t.buffer_of(t.a), t.range(t.a));  // what comes back has the bytes of what left
  EXPECT_TRUE(t.check().empty());
}

TEST(SharedMemory, AMadeUpOverlapIsRefusedAndThePairIsNamed) {
  TwoOffloaded t;
  t.put(t.buffer_of(t.a), t.buffer_of(t.b));  // b's is there until its free, behind a's unpack
  const std::vector<Hazard> hazards = t.check();
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_EQ(hazards[0].kind, HazardKind::memory_shared);
  EXPECT_EQ(t.schedule.tenants[hazards[0].first.index()].storage, t.b);
  EXPECT_EQ(t.schedule.tenants[hazards[0].second.index()].storage, t.a);
  EXPECT_THAT(hazards[0].text, HasSubstr("the buffer of saved tensor 0"));
  EXPECT_THAT(hazards[0].text, HasSubstr("that the buffer of saved tensor 1"));
}

// A load is issued where the other one still is: the copy lane does not wait for compute to be done
// with what is issued behind it.
TEST(SharedMemory, ALoadThatStartsTooEarlyIsSeen) {
  TwoOffloaded t;
  t.put(t.buffer_of(t.b), t.range(t.b));
  ASSERT_TRUE(t.check().empty());
  std::size_t load = 0;
  std::size_t evict = 0;
  for (std::size_t i = 0; i < t.schedule.instructions.size(); ++i) {
    const Instruction& each = t.schedule.instructions[i];
    const bool is_of_b = t.schedule.tenant(each.stay).storage == t.b;
    const bool is_made = t.schedule.stays[each.stay.index()].is_made;
    if (is_of_b && !is_made && each.action == Action::load) load = i;
    if (is_of_b && is_made && each.action == Action::evict) evict = i;
  }
  auto& list = t.schedule.instructions;
  ASSERT_LT(evict, load);
  list[load].anchor = list[evict].anchor;
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(evict),
              list.begin() + static_cast<std::ptrdiff_t>(load),
              list.begin() + static_cast<std::ptrdiff_t>(load) + 1);
  const std::vector<Hazard> hazards = t.check();
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_EQ(hazards[0].kind, HazardKind::memory_shared);
}

// What is there all the time shares with nobody.
TEST(SharedMemory, WhatNothingFreesIsThereAllTheTime) {
  MicroTrace t;
  const StorageId old = t.existing(kOnePage);
  const StorageId made = t.alloc(kOnePage);
  t.free(made);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const Schedule schedule = lower(index, testing::keep_all(trace))->schedule;
  const LiveRanges live = live_ranges(allocation_sequence(index, schedule), trace);
  DevicePlacement placement = place(live, kOnePage);
  EXPECT_TRUE(find_hazards(index, schedule, live, placement).empty());
  placement.pages_of =
      Grouped<std::int32_t>(2, std::vector<std::pair<std::size_t, std::int32_t>>{{0, 0}, {1, 0}});
  const std::vector<Hazard> hazards = find_hazards(index, schedule, live, placement);
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_THAT(hazards[0].text, HasSubstr("storage " + std::to_string(old.value)));
  EXPECT_THAT(hazards[0].text, HasSubstr("storage " + std::to_string(made.value)));
}

Pairs pairs_of(const std::vector<PlacementConflict>& conflicts) {
  Pairs pairs;
  for (const PlacementConflict& each : conflicts) pairs.insert(std::minmax(each.range, each.other));
  return pairs;
}

// Two proofs that share nothing but the placement: one by lifetimes of the allocator's model, one
// by the clocks of the schedule.
// A loop's `loss`, whose last one goes behind the making of the next: one of its two places has it
// at any time, whatever lies between.
TEST(SharedMemory, WhatTakesTurnsIsThereAllTheTime) {
  MicroTrace t;
  const StorageId old = t.existing(kOnePage, StorageClass::output);
  const StorageId ahead = t.alloc(kOnePage);
  t.free(ahead);
  t.alloc(kOnePage, StorageClass::output);
  t.free(old);
  const StorageId behind = t.alloc(kOnePage);
  t.backward();
  t.free(behind);
  t.repeat({old});
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const Schedule schedule = resident_schedule(index);
  const LiveRanges live = live_ranges(allocation_sequence(index, schedule), trace);
  const DevicePlacement right = place(live, kOnePage);
  EXPECT_TRUE(shared_memory_hazards(index, schedule, live, right).empty());
  const std::int32_t first = live.of_slot[old.index()];
  ASSERT_TRUE(takes_turns(live, first));
  for (const StorageId other : {ahead, behind}) {
    for (const std::int32_t place : {first, first + 1}) {
      DevicePlacement damaged = right;
      std::vector<std::pair<std::size_t, std::int32_t>> pages;
      for (std::size_t r = 0; r < live.ranges.size(); ++r) {
        const bool is_moved = static_cast<std::int32_t>(r) == live.of_slot[other.index()];
        const auto from = is_moved ? static_cast<std::size_t>(place) : r;
        pages.emplace_back(r, right.pages_of[from].front());
      }
      damaged.pages_of = Grouped<std::int32_t>(live.ranges.size(), pages);
      EXPECT_FALSE(shared_memory_hazards(index, schedule, live, damaged).empty())
          << other.index() << " in " << place;
    }
  }
}

TEST(SharedMemory, AgreesWithLifetimesOnDamagedPlacements) {
  constexpr std::uint64_t kCases = 600;
  int safe = 0;
  int unsafe = 0;
  int loaded = 0;
  std::cout << "seeds 0 to " << kCases - 1 << "\n";
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RandomTraceOptions options;
    options.ops = 4 + static_cast<int>(seed % 12);
    options.setup = seed % 2 == 0;
    options.parameters = seed % 3 == 0;
    options.unit = 64;
    const Trace trace = testing::random_trace(seed, options);
    const StepIndex index(trace);
    Decisions decisions = testing::random_decisions(trace, seed);
    if (options.parameters) decisions.parameters = testing::random_shards(trace, seed);
    if (options.parameters) {
      decisions.optimizer = testing::random_state(trace, seed);
      decisions.gradients = testing::random_gradients(trace, seed);
    }
    const auto lowered = lower(index, decisions);
    ASSERT_TRUE(lowered.ok());
    const Schedule& schedule = lowered->schedule;
    const LiveRanges live = live_ranges(allocation_sequence(index, schedule), trace);
    if (live.ranges.size() < 2) continue;
    DevicePlacement placement = place(live, kOnePage);
    ASSERT_TRUE(find_hazards(index, schedule, live, placement).empty())
        << find_hazards(index, schedule, live, placement).front().text;
    std::mt19937_64 random(seed);
    for (int damage = 0; damage < 8; ++damage) {
      const std::size_t moved = random() % live.ranges.size();
      const std::size_t to = random() % live.ranges.size();
      std::vector<std::pair<std::size_t, std::int32_t>> pages;
      for (std::size_t r = 0; r < live.ranges.size(); ++r) {
        const auto own = placement.pages_of[r];
        const auto other = placement.pages_of[to];
        for (std::size_t k = 0; k < own.size(); ++k) {
          pages.emplace_back(r, r == moved && k < other.size() ? other[k] : own[k]);
        }
      }
      DevicePlacement damaged = placement;
      damaged.pages_of = Grouped<std::int32_t>(live.ranges.size(), pages);
      const Pairs expected = pairs_of(check_placement(live, damaged));
      const std::vector<Hazard> hazards = find_hazards(index, schedule, live, damaged);
      ASSERT_EQ(hazards.empty(), expected.empty())
          << (hazards.empty() ? "range " + std::to_string(moved) : hazards.front().text);
      ++(expected.empty() ? safe : unsafe);
      loaded += std::any_of(hazards.begin(), hazards.end(),
                            [](const Hazard& each) { return each.second.valid(); });
    }
  }
  std::cout << safe << " safe, " << unsafe << " unsafe, " << loaded << " of them with a load\n";
  EXPECT_GT(safe, 400);
  EXPECT_GT(unsafe, 1000);
  EXPECT_GT(loaded, 100);
}

}  // namespace
}  // namespace stowage::simulator
