// Periods of a step through the allocator's model: by hand, and against an oracle that finds what
// is alive from its definition and keeps every block in one list.
#include "simulator/allocator/allocator_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/simulator/oracle_allocator.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

constexpr Bytes kMiB = 1 << 20;

AllocatorReplay run(const Trace& trace, const Decisions& decisions, Bytes limit = -1) {
  const StepIndex index(trace);
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
  EXPECT_TRUE(r.later_segments.empty());
  EXPECT_TRUE(r.segments_ahead.empty());
  EXPECT_TRUE(r.is_steady);
  EXPECT_TRUE(r.is_complete);
  EXPECT_FALSE(r.out_of_memory);
  const StepIndex index(trace);
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
// A is free, and B goes. Period 4 is like period 2: two states that take turns. B is taken ahead;
// then the first period finds room in it, and the second needs another one: both are.
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
  EXPECT_EQ(r.segments_ahead, (std::vector<Bytes>{28 * kMiB, 28 * kMiB}));
  EXPECT_TRUE(r.later_segments.empty());
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

// The first step makes a workspace of 4 MiB in its middle, where a freed block of 24 MiB is cached:
// it is carved out of it, and the 24 MiB that come next need a segment of their own, in which every
// later step finds room. Reserved 24 + 24. Ahead of the step it would take a segment of 20 MiB, and
// both large ones the same one: 20 + 24. Active is 28 either way.
Trace with_workspace(bool in_first_step) {
  MicroTrace t;
  t.set_up();
  if (!in_first_step) t.existing(4 * kMiB, StorageClass::workspace);
  t.free(t.alloc(24 * kMiB));
  if (in_first_step) t.made_by_first_step(4 * kMiB);
  t.free(t.alloc(24 * kMiB));
  return t.finish();
}

TEST(AllocatorReplay, WhatTheFirstStepMakesInItsMiddle) {
  const Trace trace = with_workspace(true);
  const AllocatorReplay r = run(trace, testing::keep_all(trace));
  EXPECT_EQ(r.peak_reserved, 48 * kMiB);
  EXPECT_EQ(r.peak_active, 28 * kMiB);
  EXPECT_EQ(r.periods, 2);
  EXPECT_TRUE(r.is_steady);
  EXPECT_TRUE(r.is_complete);
  EXPECT_TRUE(run(trace, testing::keep_all(trace), 48 * kMiB - 1).out_of_memory);
  const Trace ahead = with_workspace(false);
  EXPECT_EQ(run(ahead, testing::keep_all(ahead)).peak_reserved, 44 * kMiB);
  EXPECT_EQ(run(ahead, testing::keep_all(ahead)).peak_active, 28 * kMiB);
}

// 30 MiB are cached ahead of the first step. 20 of them are needed once, while 6 are alive. The
// first period leaves the allocator as it found it, and yet no later one is like it: active is 6.
TEST(AllocatorReplay, WhatTheFirstStepNeedsOnce) {
  MicroTrace t;
  t.set_up({30 * kMiB});
  const auto a = t.alloc(6 * kMiB);
  t.once(20 * kMiB);
  t.free(a);
  const Trace trace = t.finish();
  const AllocatorReplay r = run(trace, testing::keep_all(trace));
  EXPECT_EQ(r.peak_reserved, 30 * kMiB);
  EXPECT_EQ(r.peak_active, 6 * kMiB);
  EXPECT_EQ(r.periods, 2);
  EXPECT_TRUE(r.is_steady);
  EXPECT_TRUE(run(trace, testing::keep_all(trace), 25 * kMiB).out_of_memory);
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

// Where the allocator had put what was live before anybody listened is not known.
TEST(AllocatorReplay, BehindAdoptedAllocationsIsAnEstimate) {
  MicroTrace t;
  t.existing(3 * kMiB, StorageClass::parameter);
  t.set_up();
  t.free(t.alloc(2 * kMiB));
  Trace trace = t.finish();
  const AllocatorReplay known = run(trace, testing::keep_all(trace));
  EXPECT_TRUE(known.is_complete);
  trace.quality.adopted_allocations = 1;
  const AllocatorReplay adopted = run(trace, testing::keep_all(trace));
  EXPECT_FALSE(adopted.is_complete);
  EXPECT_EQ(adopted.peak_reserved, known.peak_reserved);
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
class SegmentOracle {
 public:
  SegmentOracle(const Trace& trace, const Schedule& schedule,
                const std::vector<Bytes>& segments_ahead)
      : trace_(trace), schedule_(schedule), sets_(testing::oracle_live_sets(trace, schedule)) {
    bytes_ = trace.storages.bytes;
    for (const Stay& stay : schedule.stays) {
      bytes_.push_back(schedule.tenants[stay.tenant.index()].bytes);
    }
    for (std::int32_t e = 0; e < static_cast<std::int32_t>(trace.events.size()); ++e) {
      event_of_.push_back(e);
      for (const Instruction& instruction : schedule.instructions) {
        if (instruction.anchor.event.value == e) event_of_.push_back(e);
      }
    }
    std::map<Bytes, std::vector<std::size_t>> made;
    for (const std::size_t item : trace_rows_by_alloc()) {
      if (trace.storages.free_event[item].valid() || is_at_home(StorageId(item))) continue;
      made[bytes_[item]].push_back(item);
    }
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      if (trace.storages.alloc_event[s].valid() || !trace.storages.free_event[s].valid()) continue;
      if (is_at_home(StorageId(s))) continue;
      auto& candidates = made[bytes_[s]];
      if (!candidates.empty()) {
        if (sets_.back().count(candidates.front()) > 0) heir_[s] = candidates.front();
        candidates.erase(candidates.begin());
      }
      old_.push_back(s);
    }
    while (has_setup_before(0)) set_up_row();
    // Streamed parameters leave their own memory; what is there at a step's begin comes behind the
    // segments.
    for (const Tenant& tenant : schedule.tenants) {
      if (tenant.has_own_home) drop(tenant.storage.index());
    }
    std::vector<Bytes> held;
    for (const Bytes segment : segments_ahead) {
      const Bytes before = allocator_.reserved();
      while (allocator_.reserved() == before) {
        held.push_back(allocator_.allocate(segment == 2 * kMiB ? kMiB : segment));
      }
      EXPECT_EQ(allocator_.reserved(), before + segment);
    }
    for (const Bytes address : held) allocator_.free(address);
    for (const std::size_t item : sets_.back()) {
      if (streams(item)) make(item);
    }
  }
  Bytes reserved() const { return allocator_.reserved(); }

  // Peaks of the next period.
  std::pair<Bytes, Bytes> period() {
    for (const std::size_t old : old_) {
      if (heir_.count(old) == 0) make(old);
    }
    std::pair<Bytes, Bytes> peaks{allocator_.active(), allocator_.reserved()};
    const auto look = [&] {
      peaks.first = std::max(peaks.first, allocator_.active());
      peaks.second = std::max(peaks.second, allocator_.reserved());
    };
    std::set<std::size_t> before = sets_.front();
    for (std::size_t moment = 0; moment < sets_.size(); ++moment) {
      const std::set<std::size_t>& now = sets_[moment];
      while (has_setup_before(event_of_[moment])) {
        set_up_row();
        look();
      }
      for (const std::size_t item : before) {
        if (now.count(item) == 0) drop(item);
      }
      for (const std::size_t item : now) {
        if (before.count(item) == 0) make(item);
      }
      look();
      before = now;
    }
    for (; next_setup_ < trace_.setup.size(); look()) set_up_row();
    for (const std::size_t item : before) {
      if (streams(item)) continue;  // goes on in the next period
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
  // A stay of something at home on the host: it may go on over the step's end.
  bool streams(std::size_t item) const {
    if (item < trace_.storages.size()) return false;
    return schedule_.tenant(StayId(item - trace_.storages.size())).has_own_home;
  }
  bool is_at_home(StorageId storage) const {
    return storage.valid() &&
           std::any_of(schedule_.tenants.begin(), schedule_.tenants.end(),
                       [&](const Tenant& tenant) {
                         return tenant.has_own_home &&
                                (tenant.storage == storage || tenant.previous == storage);
                       });
  }
  void make(std::size_t item) {
    if (address_.count(item) == 0) address_[item] = allocator_.allocate(bytes_[item]);
  }
  void drop(std::size_t item) {
    if (address_.count(item) == 0) return;  // the very first period
    allocator_.free(address_[item]);
    address_.erase(item);
  }
  bool has_setup_before(std::int32_t event) const {
    return next_setup_ < trace_.setup.size() && trace_.setup.event[next_setup_].value < event;
  }
  void set_up_row() {
    const std::size_t i = next_setup_++;
    if (trace_.setup.free_of[i] >= 0) {
      allocator_.free(rows_[static_cast<std::size_t>(trace_.setup.free_of[i])]);
      return;
    }
    if (trace_.setup.event[i].valid() && is_at_home(trace_.setup.storage[i])) return;
    rows_[i] = allocator_.allocate(trace_.setup.bytes[i]);
    if (trace_.setup.storage[i].valid()) address_[trace_.setup.storage[i].index()] = rows_[i];
  }

  const Trace& trace_;
  const Schedule& schedule_;
  std::vector<std::set<std::size_t>> sets_;  // by moment
  std::vector<std::int32_t> event_of_;       // by moment
  std::vector<Bytes> bytes_;
  std::vector<std::size_t> old_;
  std::map<std::size_t, std::size_t> heir_;  // what becomes `old` in the next period
  std::map<std::size_t, Bytes> address_;
  std::map<std::size_t, Bytes> rows_;  // addresses of the setup's
  std::size_t next_setup_ = 0;
  testing::OracleAllocator allocator_;
};

TEST(AllocatorReplay, EqualsTheOracle) {
  int complete = 0;
  int not_alike = 0;  // active is not the sum of the rounded sizes
  int reserved_differs = 0;
  int not_steady = 0;
  int long_runs = 0;      // of those, with more than one step before the driver is asked again
  int ahead = 0;          // some segments are taken ahead of the first step
  int later = 0;          // and some behind it all the same
  int wrapping = 0;       // parameters that are there when a step begins
  int in_first_step = 0;  // something is made in the first step only
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    testing::RandomTraceOptions options;
    options.ops = 4 + static_cast<int>(seed % 12);
    options.device_times = true;
    options.setup = true;
    options.parameters = seed >= 300;
    options.unit = Bytes{4} << (seed % 6 * 3);  // up to 800 bytes .. 26 MB
    const Trace trace = testing::random_trace(seed, options);
    const StepIndex index(trace);
    Decisions decisions = testing::random_decisions(trace, seed);
    if (options.parameters) decisions.parameters = testing::random_shards(trace, seed);
    if (options.parameters) {
      decisions.optimizer = testing::random_state(trace, seed);
      decisions.gradients = testing::random_gradients(trace, seed);
    }
    const auto lowered = lower(index, decisions);
    ASSERT_TRUE(lowered.ok()) << seed << ": " << lowered.error().text();
    const Schedule& schedule = lowered->schedule;
    const AllocatorReplay r = replay_allocator(index, schedule);
    const ReplayResult cheap = estimate(index, schedule);
    ASSERT_GE(r.peak_active, cheap.peak_active) << seed;
    ASSERT_GE(cheap.peak_active, cheap.peak_requested) << seed;
    ASSERT_GE(r.peak_reserved, r.peak_active) << seed;
    complete += r.is_complete;
    wrapping += std::any_of(schedule.stays.begin(), schedule.stays.end(),
                            [](const Stay& stay) { return stay.wraps; });
    in_first_step += trace.setup.event.back().valid();
    not_alike += r.peak_active != cheap.peak_active;
    reserved_differs += r.peak_reserved > r.peak_active + 2 * kMiB;
    if (!r.is_steady) {
      ++not_steady;
      // The peak covers a hundred steps, as long as none of them takes memory from the driver.
      SegmentOracle long_run(trace, schedule, r.segments_ahead);
      long_run.period();
      const Bytes taken = long_run.reserved();
      Bytes most = -1;
      for (int p = 1; p < 100; ++p) {
        const Bytes peak = long_run.period().first;
        if (long_run.reserved() != taken) break;
        most = std::max(most, peak);
      }
      if (most < 0) continue;
      ++long_runs;
      ASSERT_LE(most, r.peak_active) << seed;
      continue;
    }
    SegmentOracle oracle(trace, schedule, r.segments_ahead);
    ahead += !r.segments_ahead.empty();
    later += !r.later_segments.empty();
    Bytes active = 0;
    Bytes reserved = 0;
    Bytes first = 0;
    for (int p = 0; p < r.periods + kMostPeriods; ++p) {
      const auto [a, b] = oracle.period();
      if (p == 0) first = oracle.reserved();
      if (p + 1 < r.periods) continue;
      active = std::max(active, a);
      reserved = std::max(reserved, b);
    }
    ASSERT_EQ(r.peak_active, active) << "seed " << seed;
    ASSERT_EQ(r.peak_reserved, reserved) << "seed " << seed;
    const Bytes behind_first =
        std::accumulate(r.later_segments.begin(), r.later_segments.end(), Bytes{0});
    ASSERT_EQ(oracle.reserved(), first + behind_first) << "seed " << seed;
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
    // In either memory there is never less than is requested.
    for (const PlacementMode mode : {PlacementMode::caching, PlacementMode::planned}) {
      Schedule placed = schedule;
      placed.placement = mode;
      ReplayDetail detail;
      static_cast<void>(replay(index, placed, &detail));
      ASSERT_EQ(detail.active.size(), detail.requested.size());
      for (std::size_t e = 0; e < detail.active.size(); ++e)
        ASSERT_GE(detail.active[e], detail.requested[e]) << "seed " << seed << ", event " << e;
    }
    // A limit at what is needed changes nothing; one below what is active cannot be kept.
    const AllocatorReplay limited = replay_allocator(index, schedule, r.peak_reserved);
    ASSERT_FALSE(limited.out_of_memory);
    ASSERT_EQ(limited.peak_active, r.peak_active);
    ASSERT_TRUE(replay_allocator(index, schedule, cheap.peak_active - 1).out_of_memory);
  }
  EXPECT_GT(complete, 200);
  EXPECT_GT(in_first_step, 100);
  EXPECT_GT(not_alike, 50);
  EXPECT_GT(reserved_differs, 100);
  EXPECT_GT(wrapping, 60);
  EXPECT_GT(ahead, 20);
  EXPECT_LT(later, 10);
  EXPECT_LT(not_steady, 25);
  EXPECT_GT(long_runs, 3);
  RecordProperty("not_steady", not_steady);
}

}  // namespace
}  // namespace stowage::simulator
