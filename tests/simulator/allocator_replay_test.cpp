// Periods of a step through the allocator's model: by hand, and against an oracle that finds what
// is alive from its definition and keeps every block in one list.
#include "simulator/allocator_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "simulator/lowering.h"
#include "simulator/replay.h"
#include "tests/simulator/oracle_allocator.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

constexpr Bytes kMiB = 1 << 20;

AllocatorReplay run(const Trace& trace, const Decisions& decisions, Bytes limit = -1) {
  const TraceIndex index(trace);
  return replay_allocator(index, lower(index, decisions)->schedule, limit);
}

// A parameter of 4 MiB; the gradient of 4 MiB is dropped at the begin and made at the end.
// Setup: 20 MiB taken, 4 used. First period: nothing to drop; the activation of 12 MiB takes the
// 16 MiB that are left and leaves 4, where the gradient comes. Active: 20, reserved 20.
// Second period: the gradient goes, and all is as in the first. Steady after it.
TEST(AllocatorReplay, GradientsOfTheStepBefore) {
  MicroTrace t;
  t.existing(4 * kMiB);
  const auto old = t.existing(0, StorageClass::gradient);
  t.repeat({old});
  t.set_up();
  t.free(old);
  const auto activation = t.alloc(12 * kMiB);
  t.backward();
  t.alloc(4 * kMiB, StorageClass::gradient);
  t.free(activation);
  const Trace trace = t.finish();
  const AllocatorReplay r = run(trace, testing::keep_all(trace));
  EXPECT_EQ(r.peak_active, 20 * kMiB);
  EXPECT_EQ(r.peak_reserved, 20 * kMiB);
  EXPECT_EQ(r.periods, 2);
  EXPECT_TRUE(r.is_steady);
  EXPECT_TRUE(r.is_complete);
  EXPECT_FALSE(r.out_of_memory);
  const TraceIndex index(trace);
  ReplayDetail detail;
  const ReplayResult replayed = replay(index, resident_schedule(index), &detail);
  // begin, free, alloc, backward, alloc, free, backward_end.. of the steady period.
  ASSERT_EQ(detail.active.size(), trace.events.size());
  detail.active.resize(6);
  EXPECT_EQ(detail.active,
            (std::vector<Bytes>{8 * kMiB, 4 * kMiB, 16 * kMiB, 16 * kMiB, 20 * kMiB, 8 * kMiB}));
  EXPECT_EQ(detail.reserved.back(), 20 * kMiB);
  EXPECT_EQ(replayed.peak_active, 20 * kMiB);
  EXPECT_EQ(replayed.peak_reserved, 20 * kMiB);
  EXPECT_EQ(replayed.allocator_periods, 2);
  EXPECT_TRUE(replayed.allocator_exact);
}

// The gradient of the step before goes only when the new one is there. Setup: 2 MiB of small
// things. Period 1: segment A of 28 MiB. Period 2: A is held, so segment B; then A goes. Period 3:
// A is free, and B goes. Period 4 is like period 2: two states that take turns.
TEST(AllocatorReplay, StatesThatTakeTurns) {
  MicroTrace t;
  t.existing(1000);
  const auto old = t.existing(0, StorageClass::gradient);
  t.repeat({old});
  t.set_up();
  t.alloc(28 * kMiB, StorageClass::gradient);
  t.free(old);
  const Trace trace = t.finish();
  const AllocatorReplay r = run(trace, testing::keep_all(trace));
  EXPECT_TRUE(r.is_steady);
  EXPECT_EQ(r.periods, 4);
  EXPECT_EQ(r.peak_active, 56 * kMiB + 1024);
  EXPECT_EQ(r.peak_reserved, 58 * kMiB);
}

// One storage of 10 MiB leaves at the pack and returns at the unpack; between, a temporary of 16.
// The reload buffer takes the same segment: reserved 10 + 16; active 16.
TEST(AllocatorReplay, ReleaseMakesRoomForTheReload) {
  MicroTrace t;
  t.set_up();
  const auto a = t.alloc(10 * kMiB);
  const auto s = t.pack(a);
  t.let_go(a);
  const auto temporary = t.alloc(16 * kMiB);
  t.free(temporary);
  t.backward();
  t.unpack(s);
  t.free(a);
  t.existing(100);
  const Trace trace = t.finish();
  Decisions d = testing::offload_all(trace);
  d.saved[0].release.kind = ReleasePoint::Kind::pack;
  d.saved[0].reload.kind = ReloadPoint::Kind::unpack;
  const AllocatorReplay moved = run(trace, d);
  EXPECT_EQ(moved.peak_active, 16 * kMiB + 512);
  EXPECT_EQ(moved.peak_reserved, 28 * kMiB);
  const AllocatorReplay kept = run(trace, testing::keep_all(trace));
  EXPECT_EQ(kept.peak_active, 26 * kMiB + 512);
  EXPECT_EQ(kept.peak_reserved, 28 * kMiB);
}

// 2 MiB of the small pool and 12 of the large one are needed at once.
TEST(AllocatorReplay, OutOfMemoryBelowTheLimit) {
  MicroTrace t;
  t.existing(100);
  t.set_up();
  t.free(t.alloc(12 * kMiB));
  const Trace trace = t.finish();
  EXPECT_FALSE(run(trace, testing::keep_all(trace), 14 * kMiB).out_of_memory);
  EXPECT_TRUE(run(trace, testing::keep_all(trace), 14 * kMiB - 1).out_of_memory);
}

// A storage that the step frees and never makes again is there at each begin all the same.
TEST(AllocatorReplay, WhatCannotBePairedIsSaid) {
  MicroTrace t;
  const auto old = t.existing(3 * kMiB, StorageClass::gradient);
  t.set_up();
  t.free(old);
  t.alloc(2 * kMiB);
  const Trace trace = t.finish();
  const AllocatorReplay r = run(trace, testing::keep_all(trace));
  EXPECT_TRUE(r.is_steady);
  EXPECT_FALSE(r.is_complete);
  EXPECT_EQ(r.peak_active, 3 * kMiB);
}

// The live sets of the oracle turned into requests.
class Oracle {
 public:
  Oracle(const Trace& trace, const Schedule& schedule)
      : trace_(trace), sets_(testing::oracle_live_sets(trace, schedule)) {
    bytes_ = trace.storages.bytes;
    for (const Reload& reload : schedule.reloads) {
      bytes_.push_back(schedule.offloads[reload.offload.index()].bytes);
    }
    std::map<Bytes, std::vector<std::size_t>> made;
    for (const std::size_t item : trace_rows_by_alloc()) {
      if (!trace.storages.free_event[item].valid()) made[bytes_[item]].push_back(item);
    }
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      if (trace.storages.alloc_event[s].valid() || !trace.storages.free_event[s].valid()) continue;
      auto& candidates = made[bytes_[s]];
      if (!candidates.empty()) {
        if (sets_.back().count(candidates.front()) > 0) heir_[s] = candidates.front();
        candidates.erase(candidates.begin());
      }
      old_.push_back(s);
    }
    set_up();
  }

  // Peaks of the next period.
  std::pair<Bytes, Bytes> period() {
    for (const std::size_t old : old_) {
      if (heir_.count(old) == 0) make(old);
    }
    std::pair<Bytes, Bytes> peaks{allocator_.active(), allocator_.reserved()};
    std::set<std::size_t> before = sets_.front();
    for (const auto& now : sets_) {
      for (const std::size_t item : before) {
        if (now.count(item) == 0) drop(item);
      }
      for (const std::size_t item : now) {
        if (before.count(item) == 0) make(item);
      }
      peaks.first = std::max(peaks.first, allocator_.active());
      peaks.second = std::max(peaks.second, allocator_.reserved());
      before = now;
    }
    for (const std::size_t item : before) {
      const bool is_made =
          item >= trace_.storages.size() || trace_.storages.alloc_event[item].valid();
      const bool is_heir = std::any_of(heir_.begin(), heir_.end(),
                                       [&](const auto& pair) { return pair.second == item; });
      if (is_made && !is_heir) drop(item);
    }
    for (const auto& [old, heir] : heir_) {
      address_[old] = address_[heir];
      address_.erase(heir);
    }
    return peaks;
  }

 private:
  std::vector<std::size_t> trace_rows_by_alloc() const {
    std::vector<std::size_t> rows;
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      if (trace_.events.kind[e] != EventKind::alloc) continue;
      rows.push_back(static_cast<std::size_t>(trace_.events.ref[e]));
    }
    return rows;
  }
  void make(std::size_t item) {
    if (address_.count(item) == 0) address_[item] = allocator_.allocate(bytes_[item]);
  }
  void drop(std::size_t item) {
    if (address_.count(item) == 0) return;  // the very first period
    allocator_.free(address_[item]);
    address_.erase(item);
  }
  void set_up() {
    std::map<std::size_t, Bytes> rows;
    for (std::size_t i = 0; i < trace_.setup.size(); ++i) {
      if (trace_.setup.free_of[i] >= 0) {
        allocator_.free(rows[static_cast<std::size_t>(trace_.setup.free_of[i])]);
        continue;
      }
      rows[i] = allocator_.allocate(trace_.setup.bytes[i]);
      if (trace_.setup.storage[i].valid()) address_[trace_.setup.storage[i].index()] = rows[i];
    }
  }

  const Trace& trace_;
  std::vector<std::set<std::size_t>> sets_;
  std::vector<Bytes> bytes_;
  std::vector<std::size_t> old_;
  std::map<std::size_t, std::size_t> heir_;  // what becomes `old` in the next period
  std::map<std::size_t, Bytes> address_;
  testing::OracleAllocator allocator_;
};

TEST(AllocatorReplay, EqualsTheOracle) {
  int complete = 0;
  int not_alike = 0;  // active is not the sum of the rounded sizes
  int reserved_differs = 0;
  int not_steady = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::RandomTraceOptions options;
    options.ops = 4 + static_cast<int>(seed % 12);
    options.device_times = true;
    options.setup = true;
    options.unit = Bytes{4} << (seed % 6 * 3);  // up to 800 bytes .. 26 MB
    const Trace trace = testing::random_trace(seed, options);
    const TraceIndex index(trace);
    const auto lowered = lower(index, testing::random_decisions(trace, seed));
    ASSERT_TRUE(lowered.ok()) << seed << ": " << lowered.error().text();
    const Schedule& schedule = lowered->schedule;
    const AllocatorReplay r = replay_allocator(index, schedule);
    const ReplayResult cheap = estimate(index, schedule);
    ASSERT_GE(r.peak_active, cheap.peak_active) << seed;
    ASSERT_GE(cheap.peak_active, cheap.peak_requested) << seed;
    ASSERT_GE(r.peak_reserved, r.peak_active) << seed;
    complete += r.is_complete;
    not_alike += r.peak_active != cheap.peak_active;
    reserved_differs += r.peak_reserved > r.peak_active + 2 * kMiB;
    if (!r.is_steady) {
      ++not_steady;
      continue;
    }
    Oracle oracle(trace, schedule);
    Bytes active = 0;
    Bytes reserved = 0;
    for (int p = 0; p < r.periods + kMostPeriods; ++p) {
      const auto [a, b] = oracle.period();
      if (p + 1 < r.periods) continue;
      active = std::max(active, a);
      reserved = std::max(reserved, b);
    }
    ASSERT_EQ(r.peak_active, active) << "seed " << seed;
    ASSERT_EQ(r.peak_reserved, reserved) << "seed " << seed;
    // The counters after each event reach the peak, unless instructions at one event go beyond.
    AllocatorTrail trail;
    const Schedule resident = resident_schedule(index);
    const AllocatorReplay kept = replay_allocator(index, resident, -1, &trail);
    ASSERT_EQ(trail.active.size(), trace.events.size());
    ASSERT_EQ(trail.reserved.size(), trace.events.size());
    if (kept.is_steady) {
      ASSERT_LE(*std::max_element(trail.active.begin(), trail.active.end()), kept.peak_active);
      ASSERT_EQ(trail.reserved.back(), kept.peak_reserved) << seed;
    }
    // A limit at what is needed changes nothing; one below what is active cannot be kept.
    const AllocatorReplay limited = replay_allocator(index, schedule, r.peak_reserved);
    ASSERT_FALSE(limited.out_of_memory);
    ASSERT_EQ(limited.peak_active, r.peak_active);
    ASSERT_TRUE(replay_allocator(index, schedule, cheap.peak_active - 1).out_of_memory);
  }
  EXPECT_GT(complete, 200);
  EXPECT_GT(not_alike, 50);
  EXPECT_GT(reserved_differs, 100);
  EXPECT_LT(not_steady, 10);
  RecordProperty("not_steady", not_steady);
}

}  // namespace
}  // namespace stowage::simulator
