// Random steps with random plans, their updates skipped now and then: every mix of periods is safe,
// leaves the device as it found it and needs no more memory; and what the check lets pass is so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/hazards/skipped_update_check.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/kept_rows.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/simulator/oracle_time.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_damage.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using ::testing::IsEmpty;

struct SkippingCase {
  Trace trace;
  StepIndex index;
  Schedule taken;
  std::optional<SkippedUpdate> made;  // none: no parameter is updated, or no other op runs there
  std::optional<StepIndex> skipped;

  explicit SkippingCase(std::uint64_t seed, int ops = 0, bool setup = false)
      : trace(testing::random_trace(seed, {ops > 0 ? ops : static_cast<int>(4 + seed % 14),
                                           seed % 2 == 1, setup, 4, true, seed % 3 == 0})),
        index(trace) {
    Decisions decisions = testing::random_decisions(trace, seed);
    decisions.parameters = testing::random_shards(trace, seed);
    decisions.optimizer = testing::random_state(trace, seed);
    decisions.gradients = testing::random_gradients(trace, seed);
    auto lowered = lower(index, decisions);
    EXPECT_TRUE(lowered.ok()) << seed;
    if (!lowered) return;
    taken = std::move(lowered->schedule);
    if (seed % 2 == 0) let_some_leave_late(seed);
    auto without = skip_update(index, taken);
    EXPECT_EQ(without.ok(), update_section(trace).ok()) << seed;
    if (!without) return;
    made = std::move(without).value();
    skipped.emplace(made->step);
  }

  // What nobody unpacks or writes may leave at any time: some of it among the updates.
  void let_some_leave_late(std::uint64_t seed) {
    const auto section = update_section(trace);
    if (!section) return;
    for (std::size_t row = 0; row < taken.instructions.size(); ++row) {
      const Instruction& each = taken.instructions[row];
      const TenantId tenant = taken.stays[each.stay.index()].tenant;
      const bool is_reloaded =
          std::any_of(taken.stays.begin(), taken.stays.end(),
                      [&](const Stay& stay) { return stay.tenant == tenant && !stay.is_made; });
      const StorageId storage = taken.tenants[tenant.index()].storage;
      if (each.action != Action::evict || is_reloaded || !index.writes_of(storage).empty()) {
        continue;
      }
      const auto length = static_cast<std::uint64_t>(section->end.value - section->first.value);
      const EventId at = index.next_anchor(
          EventId(section->first.index() + static_cast<std::size_t>((seed / 2 + row) % length)));
      Schedule late = taken;
      testing::move_instruction(index, late, row, {at, Side::after});
      if (find_hazards(index, late).empty()) taken = late;
    }
  }

  [[nodiscard]] const Schedule& without() const { return made->schedule; }
  [[nodiscard]] std::vector<Hazard> findings(const Schedule& schedule) const {
    return check_skipped_update(index, taken, *skipped, schedule);
  }
  // Periods that skip the update (true) and that take it.
  [[nodiscard]] bool is_safe(const std::vector<bool>& kinds, const Schedule& schedule) const {
    std::vector<testing::OraclePeriod> periods;
    for (const bool skips : kinds) {
      periods.push_back({skips ? skipped->trace() : trace, skips ? schedule : taken});
    }
    return testing::oracle_is_safe(periods);
  }
};

// Each kind behind each, thrice in a row, and both as the first one.
const std::vector<bool> kMix{false, true, true, true, false, false, true};
const std::vector<bool> kOtherMix{true, false, true};

TEST(SkippedUpdateOracle, RandomCasesCoverTheGround) {
  int skipped = 0, left_out = 0, not_stored = 0, wrapping = 0, loads = 0, awaits = 0, evicts = 0;
  int saved = 0, shared = 0, renumbered = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const SkippingCase c(seed, 0, seed % 4 == 0);
    if (!c.made) continue;
    ++skipped;
    const Schedule& s = c.without();
    shared += c.made->shared == s.instructions.size();
    for (std::size_t i = 0; i < s.stays.size(); ++i) {
      left_out += s.stays[i].is_left_out;
      not_stored += !s.stays[i].is_left_out && c.taken.stays[i].is_stored && !s.stays[i].is_stored;
    }
    for (std::size_t i = c.made->shared; i < s.instructions.size(); ++i) {
      const Instruction& each = s.instructions[i];
      loads += each.action == Action::load;
      wrapping += each.action == Action::load && s.stays[each.stay.index()].wraps;
      awaits += each.action == Action::await;
      evicts += each.action == Action::evict;
      saved += s.tenant(each.stay).kind == &kSavedTensor;
    }
    const auto rows = KeptRows::find(c.trace, c.skipped->trace());
    ASSERT_TRUE(rows.ok());
    for (const Tenant& tenant : c.taken.tenants) {
      renumbered += rows->storage(tenant.storage) != tenant.storage;
    }
  }
  const std::pair<const char*, int> counts[] = {{"steps that can skip", skipped},
                                                {"left out", left_out},
                                                {"not stored", not_stored},
                                                {"nothing in the tail", shared},
                                                {"loads", loads},
                                                {"that wrap", wrapping},
                                                {"awaits", awaits},
                                                {"evicts", evicts},
                                                {"saved tensors", saved},
                                                {"renumbered", renumbered}};
  for (const auto& [what, count] : counts) EXPECT_GE(count, 20) << what;
}

TEST(SkippedUpdateOracle, FitsThePeriodThatTakesTheUpdate) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const SkippingCase c(seed);
    if (!c.made) continue;
    ASSERT_TRUE(validate(c.skipped->trace(), "").ok()) << "seed " << seed;
    const auto hazards = c.findings(c.without());
    ASSERT_THAT(hazards, IsEmpty()) << "seed " << seed << ": " << hazards.front().text;
    ASSERT_EQ(stays_at_end(c.index, c.taken), stays_at_end(*c.skipped, c.without()))
        << "seed " << seed;
    ASSERT_EQ(c.taken.host_bytes, c.without().host_bytes) << "seed " << seed;
  }
}

TEST(SkippedUpdateOracle, EveryMixIsSafe) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const SkippingCase c(seed, static_cast<int>(2 + seed % 6));
    if (!c.made) continue;
    ASSERT_TRUE(c.is_safe(kMix, c.without())) << "seed " << seed;
    ASSERT_TRUE(c.is_safe(kOtherMix, c.without())) << "seed " << seed;
  }
}

// Damage to the period that skips. What the check lets pass is safe in every mix.
TEST(SkippedUpdateOracle, WhatTheCheckLetsPassIsSafe) {
  int passed = 0, refused = 0, only_as_a_mix = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const SkippingCase c(seed, static_cast<int>(2 + seed % 6));
    if (!c.made) continue;
    for (std::uint64_t i = 0; i < 6; ++i) {
      const Schedule schedule =
          testing::ScheduleDamage(*c.skipped, c.without(), seed * 6 + i).run_on_all();
      if (!c.findings(schedule).empty()) {
        ++refused;
        only_as_a_mix += find_hazards(*c.skipped, schedule).empty();
        continue;
      }
      ++passed;
      ASSERT_TRUE(c.is_safe(kMix, schedule)) << "seed " << seed << " damage " << i;
    }
  }
  EXPECT_GT(passed, 100);  // damage that does no harm
  EXPECT_GT(refused, 1000);
  EXPECT_GT(only_as_a_mix, 300);
}

// Of a step without its update what it has to have: the live set, the time, and no more memory than
// with it, for nothing but what the update frees would be there longer; these steps have no such.
TEST(SkippedUpdateOracle, IsReplayedAsAnyOther) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const SkippingCase c(seed);
    if (!c.made) continue;
    ReplayDetail detail;
    const ReplayResult result = replay(*c.skipped, c.without(), &detail);
    const auto memory = testing::oracle_memory(c.skipped->trace(), c.without());
    ASSERT_EQ(detail.requested, memory.requested) << "seed " << seed;
    ASSERT_EQ(result.peak_requested, memory.peak) << "seed " << seed;
    const ReplayResult taken = replay(c.index, c.taken);
    ASSERT_LE(result.peak_requested, taken.peak_requested) << "seed " << seed;
    if (seed >= 200) continue;
    const auto time = testing::oracle_time(*c.skipped, c.without());
    ASSERT_EQ(result.step_ns, time.step_ns) << "seed " << seed;
    ASSERT_EQ(result.stall_ns, time.stall_ns) << "seed " << seed;
  }
}

// The device's requests over many periods, of both kinds in any order.
class MixedRequests {
 public:
  explicit MixedRequests(const SkippingCase& c)
      : rows_(*KeptRows::find(c.trace, c.skipped->trace())),
        taken_{c.trace.storages.size(), allocation_sequence(c.index, c.taken), {}},
        without_{
            c.skipped->trace().storages.size(), allocation_sequence(*c.skipped, c.without()), {}} {
    for (std::size_t s = 0; s < taken_.storages; ++s) {
      taken_.recorded[static_cast<int>(s)] = static_cast<int>(s);
      const StorageId row = rows_.storage(StorageId(s));
      if (row.valid()) without_.recorded[row.value] = static_cast<int>(s);
    }
    const AllocationSequence& of = taken_.sequence;
    for (const Slot slot : of.lasting) {
      if (std::find(of.adopted.begin(), of.adopted.end(), slot) == of.adopted.end()) {
        allocate(taken_, slot);
      }
    }
    for (const Slot slot : of.wrapping) allocate(taken_, slot);
    for (const auto& pair : of.carried) allocate(taken_, pair.old);
  }

  // The most of one period.
  Bytes run(bool skips) {
    const Kind& kind = skips ? without_ : taken_;
    peak_ = bytes_;
    for (const Slot slot : kind.sequence.made_before) allocate(kind, slot);
    for (const AllocationSequence::Step& step : kind.sequence.period) {
      step.free ? free(kind, step.slot) : allocate(kind, step.slot);
    }
    const Bytes peak = peak_;
    for (const Slot slot : kind.sequence.freed_behind) free(kind, slot);
    for (const auto& pair : kind.sequence.carried) {
      free(kind, pair.made);
      allocate(kind, pair.old);
    }
    return peak;
  }
  [[nodiscard]] const auto& live() const { return live_; }

 private:
  using Slot = AllocationSequence::Slot;
  // Storages by their row in the recording, stays by theirs.
  using Name = std::pair<char, int>;
  struct Kind {
    std::size_t storages;
    AllocationSequence sequence;
    std::map<int, int> recorded;  // by row of storages
  };

  static Name name_of(const Kind& kind, Slot slot) {
    const int stay = slot - static_cast<int>(kind.storages);
    return stay >= 0 ? Name{'b', stay} : Name{'s', kind.recorded.at(slot)};
  }
  static Bytes bytes_of(const Kind& kind, Slot slot) {
    return kind.sequence.bytes[static_cast<std::size_t>(slot)];
  }
  void allocate(const Kind& kind, Slot slot) {
    const Name name = name_of(kind, slot);
    const Bytes bytes = bytes_of(kind, slot);
    if (bytes == 0) return;
    EXPECT_TRUE(live_.emplace(name, bytes).second) << name.first << name.second;
    peak_ = std::max(peak_, bytes_ += bytes);
  }
  void free(const Kind& kind, Slot slot) {
    const Name name = name_of(kind, slot);
    const Bytes bytes = bytes_of(kind, slot);
    if (bytes == 0) return;
    EXPECT_EQ(live_.erase(name), 1U) << name.first << name.second;
    bytes_ -= bytes;
  }

  const KeptRows rows_;
  Kind taken_;
  Kind without_;
  std::map<Name, Bytes> live_;
  Bytes bytes_ = 0;
  Bytes peak_ = 0;
};

TEST(SkippedUpdateOracle, EveryMixLeavesTheDeviceAsItFoundIt) {
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const SkippingCase c(seed, 0, true);
    if (!c.made) continue;
    ++cases;
    MixedRequests requests(c);
    const auto begin = requests.live();
    std::map<bool, std::set<Bytes>> peaks;
    for (const bool skips : kMix) {
      peaks[skips].insert(requests.run(skips));
      ASSERT_EQ(requests.live(), begin);
    }
    // What is asked for does not depend on what was done in the step before.
    ASSERT_EQ(peaks[true].size(), 1U);
    ASSERT_EQ(peaks[false].size(), 1U);
  }
  EXPECT_GT(cases, 200);
}

// The allocator's model of steps that all skip: no more is in use than where all update.
TEST(SkippedUpdateOracle, TheAllocatorFindsRoom) {
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const SkippingCase c(seed, 0, true);
    if (!c.made) continue;
    ++cases;
    const ReplayResult taken = replay(c.index, c.taken);
    const ReplayResult without = replay(*c.skipped, c.without());
    ASSERT_EQ(without.allocator_exact, taken.allocator_exact) << "seed " << seed;
    ASSERT_GE(without.peak_reserved, without.peak_active) << "seed " << seed;
    ASSERT_GE(without.peak_active, without.peak_requested) << "seed " << seed;
  }
  EXPECT_GT(cases, 30);
}

}  // namespace
}  // namespace stowage::simulator
