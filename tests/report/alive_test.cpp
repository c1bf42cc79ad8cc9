// What is alive anywhere: by hand, and the fast path against a walk that asks every storage, copy
// and stay at every place.
#include "report/alive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "report/memory_by_class.h"
#include "report/memory_curve.h"
#include "tests/report/report_case.h"
#include "tests/support/schedule_parts.h"
#include "tests/support/small_trace.h"

namespace stowage::report_tests {
namespace {

using report::Alive;
using report::AliveIndex;
using report::Holding;
using simulator::Action;

using Key = std::tuple<Holding, StorageId, Bytes>;

// Ahead of instruction `done` of all, at event `e`: by the definitions in traces/trace.h and
// simulator/schedule/schedule.h, one question a thing, nothing carried from place to place.
std::vector<Key> oracle_at(const Trace& trace, const simulator::Schedule& schedule, std::size_t e,
                           std::size_t done) {
  const auto& storages = trace.storages;
  const auto& instructions = schedule.instructions;
  const EventId here(e);
  std::vector<Key> alive;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages.device[s] != 0 || storages.bytes[s] == 0) continue;
    if (storages.alloc_event[s].valid() && storages.alloc_event[s] > here) continue;
    bool streams = false;
    for (const auto& tenant : schedule.tenants) {
      streams |= tenant.has_own_home && tenant.storage == StorageId(s);
    }
    if (streams) continue;
    std::int64_t last_release = -1;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].action != Action::evict) continue;
      const simulator::Stay& stay = schedule.stays[instructions[i].stay.index()];
      if (stay.is_made && schedule.tenants[stay.tenant.index()].storage == StorageId(s)) {
        last_release = static_cast<std::int64_t>(i);
      }
    }
    bool gone = storages.free_event[s].valid() && storages.free_event[s] <= here;
    if (last_release >= 0 && storages.alloc_event[s].valid()) {
      const EventId natural = storages.natural_free_event[s];
      const EventId released = instructions[static_cast<std::size_t>(last_release)].anchor.event;
      gone =
          natural.valid() &&
          (natural >= released ? here > natural : static_cast<std::int64_t>(done) > last_release);
    }
    if (!gone) alive.emplace_back(Holding::original, StorageId(s), storages.bytes[s]);
  }
  std::vector<bool> loaded(schedule.stays.size());
  for (std::size_t r = 0; r < loaded.size(); ++r) loaded[r] = schedule.stays[r].wraps;
  for (std::size_t i = 0; i < done; ++i) {
    const auto& each = instructions[i];
    const simulator::Stay& stay = schedule.stays[each.stay.index()];
    if (stay.unpacks.empty()) {
      if (each.action == Action::load) loaded[each.stay.index()] = true;
      if (each.action == Action::evict) loaded[each.stay.index()] = false;
      continue;
    }
    if (each.action != Action::load) continue;
    const auto& tenant = schedule.tenants[stay.tenant.index()];
    bool gone = true;
    for (const UnpackId u : stay.unpacks) {
      const EventId released = trace.unpacks.released_event[u.index()];
      if (!released.valid() || here <= std::max(released, trace.unpacks.event[u.index()])) {
        gone = false;
      }
    }
    if (!gone && tenant.bytes > 0) {
      alive.emplace_back(Holding::reloaded, tenant.storage, tenant.bytes);
    }
  }
  for (std::size_t r = 0; r < loaded.size(); ++r) {
    const StorageId storage = schedule.tenants[schedule.stays[r].tenant.index()].storage;
    const Bytes bytes = storages.bytes[storage.index()];
    if (loaded[r] && bytes > 0) alive.emplace_back(Holding::original, storage, bytes);
  }
  std::sort(alive.begin(), alive.end());
  return alive;
}

Bytes sum_of(const std::vector<Key>& keys) {
  Bytes sum = 0;
  for (const Key& key : keys) sum += std::get<Bytes>(key);
  return sum;
}

std::vector<Key> keys_of(const Alive& alive) {
  std::vector<Key> keys;
  for (const auto& each : alive.storages) keys.emplace_back(each.holding, each.storage, each.bytes);
  std::sort(keys.begin(), keys.end());
  return keys;
}

template <class Row>
Bytes bytes_of(const std::vector<Row>& rows) {
  Bytes sum = 0;
  for (const Row& row : rows) sum += row.bytes;
  return sum;
}

TEST(Alive, EveryPlaceIsWhatTheOracleSaysOnRandomPlans) {
  int copies = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    const AliveIndex index(c.trace, c.schedule);
    std::size_t done = 0;
    for (std::size_t e = 0; e < c.trace.events.size(); ++e) {
      std::vector<Key> most = oracle_at(c.trace, c.schedule, e, done);
      for (; done < c.schedule.instructions.size() &&
             c.schedule.instructions[done].anchor.event == EventId(e);) {
        const std::vector<Key> next = oracle_at(c.trace, c.schedule, e, ++done);
        if (sum_of(next) > sum_of(most)) most = next;
      }
      const Alive alive = index.at(EventId(e));
      ASSERT_EQ(keys_of(alive), most) << "event " << e;
      ASSERT_EQ(alive.event, EventId(e));
      copies += std::any_of(most.begin(), most.end(), [](const Key& key) {
        return std::get<Holding>(key) == Holding::reloaded;
      });
    }
  }
  EXPECT_GT(copies, 100);
}

TEST(Alive, SumsAreTheRequestedBytesAtEveryEvent) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    const AliveIndex planned(c.trace, c.schedule);
    const AliveIndex recorded(c.trace);
    const std::vector<Bytes> requested = report::requested_after(c.trace);
    for (std::size_t e = 0; e < c.trace.events.size(); ++e) {
      for (const bool is_planned : {false, true}) {
        const Alive alive = (is_planned ? planned : recorded).at(EventId(e));
        ASSERT_EQ(alive.bytes, is_planned ? c.detail.requested[e] : requested[e]) << "event " << e;
        ASSERT_EQ(bytes_of(alive.storages), alive.bytes);
        ASSERT_EQ(bytes_of(alive.classes), alive.bytes);
        ASSERT_EQ(bytes_of(alive.layers), alive.bytes);
      }
    }
    const Alive peak = planned.at_peak();
    EXPECT_EQ(peak.bytes, c.result.peak_requested);
    EXPECT_EQ(peak.event, c.result.peak_event);
  }
}

// The stacked curve at any event is the classes that are alive there.
TEST(MemoryByClass, IsTheClassesAliveAtEveryEvent) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    const AliveIndex index(c.trace, c.schedule);
    const report::MemoryByClass memory = report::memory_by_class(c.trace, index.spans());
    ASSERT_GT(memory.size(), 0U);
    EXPECT_EQ(memory.event[0], EventId(0));
    std::size_t point = 0;
    for (std::size_t e = 0; e < c.trace.events.size(); ++e) {
      if (point + 1 < memory.size() && memory.event[point + 1] == EventId(e)) ++point;
      std::map<StorageClass, Bytes> expected;
      for (const auto& row : index.at(EventId(e)).classes) expected[row.storage_class] = row.bytes;
      for (std::size_t k = 0; k < memory.classes.size(); ++k) {
        ASSERT_EQ(memory.bytes[k][point], expected[memory.classes[k]]) << "event " << e;
      }
    }
  }
}

TEST(MemoryByClass, HasAPointWhereSomethingChangesOnly) {
  testing::MicroTrace t;
  t.existing(10);
  const auto a = t.alloc(100);  // event 1
  t.begin_layer("a");           // 2
  t.free(a);                    // 3
  t.end_layer("a");             // 4
  const Trace trace = t.finish();
  const report::MemoryByClass memory = report::memory_by_class(trace, report::AliveSpans(trace));
  EXPECT_THAT(memory.event, ::testing::ElementsAre(EventId(0), EventId(1), EventId(3)));
  EXPECT_THAT(memory.classes,
              ::testing::ElementsAre(StorageClass::parameter, StorageClass::activation));
  EXPECT_THAT(memory.bytes[0], ::testing::ElementsAre(10, 10, 10));
  EXPECT_THAT(memory.bytes[1], ::testing::ElementsAre(0, 100, 0));
}

// small_trace.h: at the peak all three activations and the backward op's 2 MB are there.
TEST(Alive, AtThePeakByClassLayerAndStorage) {
  const Trace trace = testing::small_trace(3);
  const Alive peak = AliveIndex(trace).at_peak();
  EXPECT_EQ(peak.bytes, testing::small_trace_peak(3));
  ASSERT_FALSE(peak.classes.empty());
  EXPECT_EQ(peak.classes[0].storage_class, StorageClass::activation);
  EXPECT_EQ(peak.storages[0].bytes, 2'000'000);
  EXPECT_TRUE(std::is_sorted(peak.storages.begin(), peak.storages.end(),
                             [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
  Bytes parameters = 0;
  for (const auto& row : peak.classes) {
    if (row.storage_class == StorageClass::parameter) parameters = row.bytes;
  }
  EXPECT_EQ(parameters, 3 * 400'000);
}

TEST(Alive, EventAtIsTheLastOneThatHasBegun) {
  const std::vector<Nanoseconds> times = {0, 0, 5, 5, 9};
  EXPECT_EQ(report::event_at(times, -1), EventId(0));
  EXPECT_EQ(report::event_at(times, 0), EventId(1));
  EXPECT_EQ(report::event_at(times, 4), EventId(1));
  EXPECT_EQ(report::event_at(times, 5), EventId(3));
  EXPECT_EQ(report::event_at(times, 100), EventId(4));
}

}  // namespace
}  // namespace stowage::report_tests
