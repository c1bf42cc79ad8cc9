// What a running step is handed out of a layout, by hand.
#include "simulator/placement/hand_out_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/hand_out_text.h"
#include "simulator/placement/memory_layout.h"
#include "simulator/placement/placement_check.h"
#include "simulator/replay/replay.h"
#include "simulator/step/plan_structure.h"
#include "tests/support/micro_trace.h"
#include "traces/trace_file.h"

namespace stowage::simulator {
namespace {

constexpr Bytes kPage = 4096;
constexpr PageChoice kPages{kPage, 1'000'000};

// a of 8192 bytes, then, in its place, b of 4096 and c of 4096; all are gone behind the backward.
struct Three {
  stowage::testing::MicroTrace t;
  Trace trace;
  EventId at_b;

  Three() {
    const StorageId a = t.alloc(8192);
    t.run(10);
    t.free(a);
    const StorageId b = t.alloc(4096);
    const StorageId c = t.alloc(4096);
    t.backward();
    t.free(b);
    t.free(c);
    trace = t.finish();
    at_b = trace.storages.alloc_event[b.index()];
  }
  [[nodiscard]] MemoryLayout layout() const {
    const StepIndex index(trace);
    return memory_layout(index, resident_schedule(index), kPages);
  }
};

TEST(MemoryLayout, HasTheAllocationsInProgramOrderEachAtAnAddressOfItsOwn) {
  const Three three;
  const MemoryLayout layout = three.layout();
  ASSERT_EQ(layout.hand_outs.size(), 3U);
  EXPECT_EQ(layout.bytes(layout.hand_outs[0].range), 8192);
  EXPECT_EQ(layout.bytes(layout.hand_outs[1].range), 4096);
  EXPECT_EQ(layout.hand_outs[1].event, three.at_b);
  EXPECT_EQ(layout.placement.pages, 2);
  EXPECT_EQ(layout.address, (std::vector<Bytes>{0, 8192, 12288}));
  EXPECT_EQ(layout.region_bytes, 16384);
  Bytes mapped = 0;
  for (const Mapping& mapping :
       mappings(layout, 0, static_cast<std::int32_t>(layout.live.ranges.size()))) {
    EXPECT_EQ(mapping.address, mapped);
    EXPECT_LE(mapping.offset + mapping.bytes, layout.placement.bytes());
    mapped += mapping.bytes;
  }
  EXPECT_EQ(mapped, layout.region_bytes);
}

TEST(MemoryLayout, APageIsAsLargeAsTheNumberOfMappingsAsksFor) {
  LiveRanges live;
  live.ranges = {{40960, 0, 1}, {100, 0, 1}};
  EXPECT_EQ(page_bytes(live, {4096, 11}), 4096);
  EXPECT_EQ(page_bytes(live, {4096, 10}), 8192);
  EXPECT_EQ(page_bytes(live, {4096, 2}), 65536);
  EXPECT_EQ(page_bytes(live, {4096, 1}), 65536) << "two ranges have two pages at least";
}

TEST(HandOuts, AreServedInEveryPeriod) {
  const Three three;
  const MemoryLayout layout = three.layout();
  HandOutServer server(layout);
  EXPECT_EQ(server.allocate(8192), -1) << "ahead of the first period";
  for (int period = 0; period < 3; ++period) {
    server.begin_period();
    const std::int32_t a = server.allocate(8192);
    ASSERT_EQ(a, layout.hand_outs[0].range);
    server.free(a);
    const std::int32_t b = server.allocate(4096);
    const std::int32_t c = server.allocate(4096);
    ASSERT_EQ(b, layout.hand_outs[1].range);
    ASSERT_EQ(c, layout.hand_outs[2].range);
    EXPECT_EQ(server.live(), 2);
    server.free(b);
    server.free(c);
    server.end_period();
    EXPECT_EQ(server.allocate(8192), -1) << "between two";
  }
  EXPECT_EQ(server.report().served, 9);
  EXPECT_EQ(server.report().conflicts, 0);
  EXPECT_EQ(server.report().unforeseen, 0);
}

// Gradients of two parameters that are kept. Later steps make both of what they add to them in one
// op; the first step makes the gradients there, and nothing beside.
Trace two_kept_gradients() {
  stowage::testing::MicroTrace t;
  std::vector<std::pair<StorageId, StorageId>> gradients;
  for (int i = 0; i < 2; ++i) {
    const StorageId parameter = t.existing(500);
    gradients.emplace_back(parameter, t.gradient_before(parameter));
  }
  t.backward();
  t.begin_op("aten::backward");
  const StorageId added[] = {t.alloc(500), t.alloc(500)};
  t.end_op();
  for (int i = 0; i < 2; ++i) {
    t.begin_op("aten::add_");
    t.read(added[i]);
    t.write(gradients[static_cast<std::size_t>(i)].second);
    t.end_op();
    t.accumulate(gradients[static_cast<std::size_t>(i)].first);
    t.free(added[i]);
  }
  return t.finish();
}

TEST(HandOuts, OfGradientsThatAreKeptAreMadeOnceByTheFirstPeriod) {
  const Trace trace = two_kept_gradients();
  const StepIndex index(trace);
  const MemoryLayout layout = memory_layout(index, resident_schedule(index), kPages);
  ASSERT_EQ(layout.hand_outs.size(), 2U);
  ASSERT_EQ(layout.first_hand_outs.size(), 4U);
  EXPECT_EQ(layout.first_hand_outs[0].event, layout.hand_outs[0].event);
  EXPECT_EQ(layout.first_hand_outs[2].event, layout.hand_outs[1].event);
  const auto expect_served = [&](HandOutServer& server) {
    for (int period = 0; period < 2; ++period) {
      server.begin_period();
      const std::int32_t first = server.allocate(500);
      const std::int32_t second = server.allocate(500);
      EXPECT_EQ(first, layout.hand_outs[0].range);
      EXPECT_EQ(second, layout.hand_outs[1].range);
      server.free(first);
      server.free(second);
      server.end_period();
    }
    EXPECT_EQ(server.report().conflicts, 0);
    EXPECT_EQ(server.report().unforeseen, 0);
  };
  const auto take_older = [](HandOutServer& server, int count) {
    for (int i = 0; i < count; ++i) EXPECT_GE(server.take_lasting(500), 0);
  };
  HandOutServer server(layout);
  take_older(server, 2);  // the parameters
  server.begin_period();
  for (int i = 0; i < 2; ++i) {
    const std::int32_t gradient = server.allocate(500);
    EXPECT_NE(gradient, layout.hand_outs[0].range);
    EXPECT_NE(gradient, layout.hand_outs[1].range);
    EXPECT_GE(gradient, 0);
  }
  server.end_period();
  expect_served(server);
  // A plan that is made when they are there already.
  HandOutServer later(layout);
  take_older(later, 4);
  expect_served(later);
}

TEST(HandOuts, AreRefusedWhileSomebodyKeepsTheirBytes) {
  const Three three;
  const MemoryLayout layout = three.layout();
  HandOutServer server(layout);
  server.begin_period();
  const std::int32_t a = server.allocate(8192);  // kept
  EXPECT_EQ(server.allocate(4096), -1);
  EXPECT_EQ(server.allocate(4096), -1);
  ASSERT_EQ(server.report().first_conflicts.size(), 2U);
  EXPECT_EQ(server.report().first_conflicts[0].range, layout.hand_outs[1].range);
  EXPECT_EQ(server.report().first_conflicts[0].owner, a);
  EXPECT_EQ(server.report().first_conflicts[0].event, three.at_b);
  EXPECT_EQ(server.report().first_conflicts[0].times, 1);
  server.begin_period();
  EXPECT_EQ(server.allocate(8192), -1) << "it has its bytes already";
  server.free(a);
  server.begin_period();
  EXPECT_EQ(server.allocate(8192), a);
  EXPECT_EQ(server.report().conflicts, 3);
}

// A loop's `loss`: that of the step before goes when the name is bound to the new one.
struct Outlives {
  stowage::testing::MicroTrace t;
  Trace trace;
  Outlives() {
    const StorageId old = t.existing(4096, StorageClass::output);
    const StorageId a = t.alloc(8192);
    t.alloc(4096, StorageClass::output);
    t.free(old);
    t.backward();
    t.free(a);
    t.repeat({old});
    trace = t.finish();
  }
};

TEST(HandOuts, OfWhatOutlivesItsSuccessorTakeTurns) {
  const Outlives step;
  const StepIndex index(step.trace);
  const MemoryLayout layout = memory_layout(index, resident_schedule(index), kPages);
  EXPECT_TRUE(check_placement(layout.live, layout.placement).empty());
  EXPECT_EQ(layout.placement.pages, 4) << "two of the loss, two of the other";
  EXPECT_EQ(layout.placement.lower_bound, 4 * kPage);
  EXPECT_TRUE(layout.lasting.empty());
  HandOutServer server(layout);
  std::int32_t before = -1;
  for (int period = 0; period < 5; ++period) {
    server.begin_period();
    const std::int32_t a = server.allocate(8192);
    const std::int32_t loss = server.allocate(4096);
    ASSERT_GE(loss, 0);
    EXPECT_NE(loss, before);
    EXPECT_EQ(layout.bytes(loss), 4096);
    if (before >= 0) server.free(before);
    server.free(a);
    server.end_period();
    before = loss;
  }
  EXPECT_EQ(server.report().served, 10);
  EXPECT_EQ(server.report().conflicts, 0);
  // One more that is kept has no place, and nobody's bytes are given to it.
  server.begin_period();
  server.free(server.allocate(8192));
  EXPECT_GE(server.allocate(4096), 0);
  server.end_period();
  server.begin_period();
  server.free(server.allocate(8192));
  EXPECT_EQ(server.allocate(4096), -1);
  EXPECT_EQ(server.report().conflicts, 1);
}

TEST(HandOuts, WhatOutlivesItsSuccessorCountsTwiceWhileBothAreThere) {
  const Outlives step;
  const StepIndex index(step.trace);
  const LiveRanges live =
      live_ranges(allocation_sequence(index, resident_schedule(index)), step.trace);
  // Begin, a, the new loss, the old one's free, the free of a.
  EXPECT_EQ(live_bytes(live), (std::vector<Bytes>{4096, 12288, 16384, 12288, 4096}));
}

TEST(HandOuts, ReportsNameWhoKeepsAndWhoGoesWithout) {
  stowage::testing::MicroTrace t;
  t.begin_layer("one");
  t.begin_op("aten::tanh");
  const StorageId a = t.alloc(8192);
  t.run(1).end_op();
  t.end_layer("one");
  t.free(a);
  t.begin_layer("two");
  t.begin_op("aten::exp");
  const StorageId b = t.alloc(4096);
  t.run(1).end_op();
  t.end_layer("two");
  t.backward();
  t.free(b);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const MemoryLayout layout = memory_layout(index, resident_schedule(index), kPages);
  HandOutServer server(layout);
  server.begin_period();
  ASSERT_EQ(server.allocate(100), -1);
  ASSERT_GE(server.allocate(8192), 0);  // and it is kept
  ASSERT_EQ(server.allocate(4096), -1);
  server.reach(EventId(trace.events.size() - 1));
  ASSERT_EQ(server.allocate(200), -1);
  server.name_unforeseen(1, "aten::mul");
  EXPECT_EQ(surprises_text(trace, server.report()),
            (std::vector<std::string>{
                "what aten::tanh in one made is kept longer than planned: its bytes are those of "
                "aten::exp in two",
                "100 B were not foreseen, ahead of aten::tanh in one",
                "200 B of aten::mul were not foreseen, ahead of the step's end"}));
}

// A long run's report still has room for what comes late.
TEST(HandOuts, NameEachKindOnceHoweverOftenItComes) {
  const Three three;
  const MemoryLayout layout = three.layout();
  HandOutServer server(layout);
  constexpr int kSteps = 3 * static_cast<int>(HandOutReport::kMostNamed);
  server.begin_period();
  const std::int32_t kept = server.allocate(8192);
  ASSERT_GE(kept, 0);
  for (int step = 0; step < kSteps; ++step) {
    server.begin_period();
    EXPECT_EQ(server.allocate(8192), -1) << "it has its bytes already";
    EXPECT_EQ(server.allocate(100), -1) << "nothing has this size";
  }
  EXPECT_EQ(server.allocate(200), -1);
  const HandOutReport& report = server.report();
  EXPECT_EQ(report.conflicts, kSteps);
  EXPECT_EQ(report.unforeseen, kSteps + 1);
  ASSERT_EQ(report.first_conflicts.size(), 1U);
  EXPECT_EQ(report.first_conflicts[0].times, kSteps);
  ASSERT_EQ(report.first_unforeseen.size(), 2U);
  EXPECT_EQ(report.first_unforeseen[0].times, kSteps);
  EXPECT_EQ(report.first_unforeseen[1].bytes, 200);
  EXPECT_EQ(report.first_unforeseen[1].times, 1);
}

TEST(HandOuts, GoOnBehindWhatWasNotForeseen) {
  const Three three;
  const MemoryLayout layout = three.layout();
  HandOutServer server(layout);
  server.begin_period();
  EXPECT_EQ(server.allocate(100), -1) << "nothing has this size";
  ASSERT_EQ(server.report().first_unforeseen.size(), 1U);
  EXPECT_EQ(server.report().first_unforeseen[0].bytes, 100);
  EXPECT_EQ(server.report().first_unforeseen[0].ahead_of, layout.hand_outs[0].event);
  // The first one does not come: the second is found by its size.
  EXPECT_EQ(server.allocate(4096), layout.hand_outs[1].range);
  server.free(layout.hand_outs[1].range);
  // One more of a size than planned takes nothing from those behind it.
  server.begin_period();
  const std::int32_t a = server.allocate(8192);
  ASSERT_GE(a, 0);
  server.free(a);
  EXPECT_EQ(server.allocate(8192), -1) << "once too often";
  server.reach(three.at_b);
  EXPECT_EQ(server.allocate(4096), layout.hand_outs[1].range);
  EXPECT_EQ(server.allocate(4096), layout.hand_outs[2].range);
  EXPECT_EQ(server.allocate(4096), -1) << "behind the last one";
  EXPECT_FALSE(server.report().first_unforeseen.back().ahead_of.valid());
  EXPECT_EQ(server.report().unforeseen, 3);
}

// A parameter of 8192 bytes is there all the time, and so is state of 4096 that the first step
// makes behind its second event, with 1000 bytes that it needs but once; a, of 4096, is the step's.
struct Lasting {
  stowage::testing::MicroTrace t;
  Trace trace;
  EventId at_a;

  Lasting() {
    const StorageId parameter = t.existing(8192);
    const StorageId state = t.existing(4096, StorageClass::optimizer_state);
    const StorageId a = t.alloc(4096);
    t.run(10);
    t.backward();
    t.free(a);
    trace = t.finish();
    at_a = trace.storages.alloc_event[a.index()];
    Setup& setup = trace.setup;
    const EventId before(at_a.index() - 1);
    setup.bytes = {8192, 1000, 4096, 0};
    setup.free_of = {-1, -1, -1, 1};
    setup.storage = {parameter, StorageId(), state, StorageId()};
    setup.event = {EventId(), before, before, before};
  }
  [[nodiscard]] MemoryLayout layout() const {
    const StepIndex index(trace);
    return memory_layout(index, resident_schedule(index), kPages);
  }
};

TEST(HandOuts, WhatLastsMovesInBySizeAndAFirstPeriodMakesTheRest) {
  const Lasting step;
  const MemoryLayout layout = step.layout();
  ASSERT_EQ(layout.lasting.size(), 2U);
  ASSERT_EQ(layout.hand_outs.size(), 1U);
  ASSERT_EQ(layout.first_hand_outs.size(), 3U);
  EXPECT_EQ(layout.placement.pages, 4);
  HandOutServer server(layout);
  const std::int32_t parameter = server.take_lasting(8192);
  ASSERT_GE(parameter, 0);
  EXPECT_EQ(layout.bytes(parameter), 8192);
  EXPECT_EQ(server.take_lasting(8192), -1) << "one of that size lasts";
  EXPECT_EQ(server.take_lasting(100), -1);
  EXPECT_EQ(server.report().served, 0) << "outside of any period";
  server.begin_period();
  EXPECT_EQ(server.allocate(1000), -1) << "needed but once: the allocator's";
  const std::int32_t state = server.allocate(4096);
  EXPECT_EQ(state, layout.first_hand_outs[1].range);
  const std::int32_t a = server.allocate(4096);
  EXPECT_EQ(a, layout.hand_outs[0].range);
  EXPECT_NE(a, state);
  server.free(a);
  server.end_period();
  server.begin_period();
  EXPECT_EQ(server.allocate(4096), a) << "state is there";
  server.free(a);
  EXPECT_EQ(server.report().served, 3);
  EXPECT_EQ(server.report().conflicts, 0);
  EXPECT_EQ(server.report().unforeseen, 0);
  // What lasts may go and come again: its range is free for one of its size.
  server.free(parameter);
  EXPECT_EQ(server.take_lasting(8192), parameter);
}

// More than a hand-out looks ahead, as DDP's buckets are, which the recording's process made when
// it was listened to and a process that has trained has already.
struct MadeBesides {
  stowage::testing::MicroTrace t;
  Trace trace;
  MadeBesides() {
    const StorageId parameter = t.existing(8192);
    const StorageId a = t.alloc(4096);
    t.backward();
    t.free(a);
    trace = t.finish();
    const EventId before(trace.storages.alloc_event[a.index()].index() - 1);
    trace.setup.bytes = {8192};
    trace.setup.free_of = {-1};
    trace.setup.storage = {parameter};
    trace.setup.event = {EventId()};
    for (std::int32_t row = 1; row <= 12; ++row) {  // each gone again
      for (const bool frees : {false, true}) {
        trace.setup.bytes.push_back(frees ? 0 : 1000);
        trace.setup.free_of.push_back(frees ? 2 * row - 1 : -1);
        trace.setup.storage.emplace_back();
        trace.setup.event.push_back(before);
      }
    }
  }
};

TEST(HandOuts, AProcessThatHasTrainedWaitsForNothingThatAFirstStepMakesBesides) {
  const MadeBesides step;
  const StepIndex index(step.trace);
  const Schedule schedule = resident_schedule(index);
  const MemoryLayout first = memory_layout(index, schedule, kPages);
  ASSERT_EQ(first.first_hand_outs.size(), 13U);
  HandOutServer looks_past_them(first);
  looks_past_them.begin_period();
  EXPECT_EQ(looks_past_them.allocate(4096), first.hand_outs[0].range);
  const MemoryLayout later = memory_layout(index, schedule, kPages, RanBefore::steps);
  EXPECT_TRUE(later.first_hand_outs.empty());
  HandOutServer server(later);
  server.begin_period();
  EXPECT_EQ(server.allocate(4096), later.hand_outs[0].range);
  EXPECT_EQ(server.report().unforeseen, 0);
}

TEST(HandOuts, WhatLastsMayBeMadeBehindWhatTheListHasBehindIt) {
  stowage::testing::MicroTrace t;
  const StorageId state = t.existing(4096, StorageClass::optimizer_state);
  const StorageId scalar = t.alloc(8);
  const StorageId a = t.alloc(4096);
  t.run(10);
  t.backward();
  t.free(a);
  t.free(scalar);
  Trace trace = t.finish();
  const EventId before(trace.storages.alloc_event[scalar.index()].index() - 1);
  trace.setup.bytes = {4096};
  trace.setup.free_of = {-1};
  trace.setup.storage = {state};
  trace.setup.event = {before};
  const StepIndex index(trace);
  const MemoryLayout layout = memory_layout(index, resident_schedule(index), kPages);
  HandOutServer server(layout);
  server.begin_period();
  EXPECT_EQ(server.allocate(8), layout.hand_outs[0].range);
  EXPECT_EQ(server.allocate(4096), layout.lasting[0]) << "state, behind the scalar";
  EXPECT_EQ(server.allocate(4096), layout.hand_outs[1].range);
  EXPECT_EQ(server.report().conflicts, 0);
}

// State of an optimizer: made behind the begin of its parameter's update, of which the setup says
// nothing, and of the size of what the update allocates.
TEST(HandOuts, WhatTheFirstPeriodMakesIsNotGonePastByWhatLiesAheadOfIt) {
  stowage::testing::MicroTrace t;
  std::vector<StorageId> parameters = {t.existing(4096), t.existing(4096)};
  std::vector<StorageId> states;
  std::vector<EventId> updates;
  std::vector<EventId> behind;
  for (int i = 0; i < 2; ++i) states.push_back(t.existing(4096, StorageClass::optimizer_state));
  t.backward();
  t.optimizer();
  for (const StorageId parameter : parameters) {
    behind.push_back(t.last_event());
    t.update(parameter, 10);
    updates.push_back(EventId(t.last_event().index() - 1));
    const StorageId root = t.alloc(4096);
    t.run(10);
    t.free(root);
  }
  Trace trace = t.finish();
  trace.setup.bytes = {4096, 4096};
  trace.setup.free_of = {-1, -1};
  trace.setup.storage = {states[0], states[1]};
  trace.setup.event = {behind[0], behind[1]};
  const StepIndex index(trace);
  const MemoryLayout layout = memory_layout(index, resident_schedule(index), kPages);
  ASSERT_EQ(layout.hand_outs.size(), 2U);
  HandOutServer server(layout);
  const std::int32_t first = server.take_lasting(4096);
  const std::int32_t second = server.take_lasting(4096);
  for (int period = 0; period < 3; ++period) {
    server.begin_period();
    for (std::size_t i = 0; i < 2; ++i) {
      server.reach(EventId(updates[i].index()));
      server.reach(EventId(updates[i].index() + 1));
      if (period == 0) {
        const std::int32_t state = server.allocate(4096);
        EXPECT_TRUE(std::find(layout.lasting.begin(), layout.lasting.end(), state) !=
                    layout.lasting.end());
        EXPECT_NE(state, first);
        EXPECT_NE(state, second);
      }
      const std::int32_t root = server.allocate(4096);
      EXPECT_EQ(root, layout.hand_outs[i].range);
      server.free(root);
    }
    server.end_period();
  }
  EXPECT_EQ(server.report().conflicts, 0);
  EXPECT_EQ(server.report().unforeseen, 0);
}

// The same of a recording: no state comes ahead of its parameter's update, where reach() would go
// past it.
TEST(MemoryLayout, StateOfARecordedAdamwComesBehindTheBeginOfItsUpdate) {
  const auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l2-adamw-bf16-h100.trace.json.gz");
  ASSERT_TRUE(loaded.ok());
  const Trace& trace = loaded->trace;
  const StepIndex index(trace);
  const MemoryLayout layout =
      memory_layout(index, resident_schedule(index, PlacementMode::planned), kPages);
  std::vector<EventId> made(layout.live.ranges.size());
  for (const HandOut& each : layout.first_hand_outs) {
    if (each.range >= 0) made[static_cast<std::size_t>(each.range)] = each.event;
  }
  int states = 0;
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    if (trace.events.kind[e] != EventKind::parameter_update_begin) continue;
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      if (trace.storages.storage_class[s] != StorageClass::optimizer_state) continue;
      if (trace.storages.parameter[s].value != trace.events.ref[e]) continue;
      const std::int32_t range = layout.live.of_slot[s];
      ASSERT_GE(range, 0);
      EXPECT_GT(made[static_cast<std::size_t>(range)], EventId(e)) << "state " << s;
      ++states;
    }
  }
  EXPECT_EQ(states, 56);
}

// Three steps of it, from the first one on, in which the optimizer makes its state inside of the
// updates; whoever follows the step hears of its anchors.
HandOutReport run_with_updates(const StepIndex& index, const Schedule& schedule) {
  const Trace& trace = index.trace();
  const MemoryLayout layout = memory_layout(index, schedule, kPages);
  const AllocationSequence sequence = allocation_sequence(index, schedule);
  const auto storages = static_cast<AllocationSequence::Slot>(trace.storages.size());
  HandOutServer server(layout);
  std::vector<std::int32_t> given(sequence.bytes.size(), -1);
  const auto at = [&](AllocationSequence::Slot slot) -> std::int32_t& {
    return given[static_cast<std::size_t>(slot)];
  };
  for (int period = 0; period < 3; ++period) {
    server.begin_period();
    auto step = sequence.period.begin();
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      if (index.is_anchor(EventId(e))) server.reach(EventId(e));
      const bool updates = trace.events.kind[e] == EventKind::parameter_update_begin;
      for (std::size_t s = 0; period == 0 && updates && s < trace.storages.size(); ++s) {
        if (trace.storages.storage_class[s] != StorageClass::optimizer_state) continue;
        if (trace.storages.parameter[s].value != trace.events.ref[e]) continue;
        at(static_cast<AllocationSequence::Slot>(s)) = server.allocate(trace.storages.bytes[s]);
      }
      for (; step != sequence.period.end() && step->event.index() == e; ++step) {
        if (step->free) {
          if (at(step->slot) >= 0) server.free(at(step->slot));
          at(step->slot) = -1;
        } else if (const Bytes bytes = sequence.bytes[static_cast<std::size_t>(step->slot)];
                   bytes > 0) {
          at(step->slot) =
              server.allocate(bytes, step->slot < storages ? kNoStay : step->slot - storages);
        }
      }
    }
    for (const auto& [old, made] : sequence.carried) at(old) = std::exchange(at(made), -1);
    server.end_period();
  }
  return server.report();
}

// Where something runs again the frees behind backward stand elsewhere than in the recording, and
// with them what the setup says of the first step.
TEST(HandOuts, AdamwsStateHasItsPlaceInTheFirstStepWhateverRunsAgain) {
  const auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l2-adamw-bf16-h100.trace.json.gz");
  ASSERT_TRUE(loaded.ok());
  for (const char* segment : {"", "layers.*", "layers.1.mlp"}) {
    SCOPED_TRACE(segment);
    Plan plan;
    if (*segment != '\0') plan.recompute.push_back({segment});
    SavedRule leaves;
    leaves.op = "aten::*softmax";
    leaves.decision = Decision::offload;
    plan.saved = {leaves};
    const auto step = unroll(loaded->trace, plan);
    ASSERT_TRUE(step.ok()) << step.error().text();
    const StepIndex index(*step);
    const auto lowered = lower(index, plan);
    ASSERT_TRUE(lowered.ok()) << lowered.error().text();
    const HandOutReport report = run_with_updates(index, lowered->schedule);
    EXPECT_GT(report.served, 0);
    EXPECT_EQ(report.conflicts, 0);
    EXPECT_EQ(report.unforeseen, 0);
  }
}

TEST(HandOuts, AFirstPeriodThatDoesNotComeToItsEndIsFollowedByAnother) {
  const Lasting step;
  const MemoryLayout layout = step.layout();
  HandOutServer server(layout);
  server.begin_period();
  EXPECT_EQ(server.allocate(1000), -1);
  server.end_period();
  server.begin_period();
  EXPECT_EQ(server.allocate(1000), -1);
  EXPECT_EQ(server.allocate(4096), layout.first_hand_outs[1].range);
  EXPECT_EQ(server.report().unforeseen, 0);
}

}  // namespace
}  // namespace stowage::simulator
