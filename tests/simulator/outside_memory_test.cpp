// What a program has on the device beside what it hands to a planned step: by hand.
#include "simulator/placement/outside_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/allocator/allocation_sequence.h"
#include "simulator/placement/planned_memory.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

// A parameter, a batch that each step uses again and 12 MB that no step uses; a step of 3 MiB.
struct Process {
  stowage::testing::MicroTrace t;
  StorageId parameter;
  StorageId batch;
  Trace trace;

  Process() {
    parameter = t.existing(4 * kMiB);
    batch = t.existing(1000, StorageClass::other);
    t.set_up();
    t.free(t.alloc(3 * kMiB));
    trace = t.finish();
    trace.storages.evidence[batch.index()] = Evidence::none;
    Setup& setup = trace.setup;
    setup.bytes.insert(setup.bytes.begin(), 12'000'000);
    setup.free_of.insert(setup.free_of.begin(), -1);
    setup.storage.insert(setup.storage.begin(), StorageId());
    setup.event.insert(setup.event.begin(), EventId());
    trace.quality.adopted_allocations = 3;
  }
  [[nodiscard]] PlannedMemory planned() const {
    const StepIndex index(trace);
    return planned_memory(index, resident_schedule(index));
  }
};

TEST(OutsideMemory, IsWhatNobodyHandsOver) {
  const Process process;
  const OutsideMemory outside = outside_memory(process.trace);
  EXPECT_FALSE(outside.is_storage[process.parameter.index()]);
  EXPECT_TRUE(outside.is_storage[process.batch.index()]);
  EXPECT_EQ(std::count(outside.is_storage.begin(), outside.is_storage.end(), true), 1);
  EXPECT_EQ(outside.is_setup, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(outside.bytes.active, 12'000'256 + 1024);
  EXPECT_EQ(outside.bytes.reserved, 12 * kMiB + 2 * kMiB);
}

// What came behind the beginning of listening: a library's workspace, which a planned step moves,
// and what it does not: a batch of the loop's, and another model that the step does not know.
TEST(OutsideMemory, OfWhatIsNotAdoptedAllButWorkspaces) {
  stowage::testing::MicroTrace t;
  const StorageId workspace = t.existing(kMiB, StorageClass::workspace);
  const StorageId batch = t.existing(3 * kMiB, StorageClass::other);
  const StorageId model = t.existing(5 * kMiB, StorageClass::other);
  t.set_up({500});
  t.begin_op();
  t.read(batch);
  t.end_op();
  Trace trace = t.finish();
  trace.storages.evidence.assign(3, Evidence::none);
  trace.quality.adopted_allocations = 1;                                         // what is gone
  for (const Evidence evidence : {Evidence::registered, Evidence::data_flow}) {  // new, older
    trace.storages.evidence[workspace.index()] = evidence;
    EXPECT_FALSE(outside_memory(trace).is_storage[workspace.index()]);
  }
  const OutsideMemory outside = outside_memory(trace);
  EXPECT_TRUE(outside.is_storage[batch.index()]);
  EXPECT_TRUE(outside.is_storage[model.index()]);
  EXPECT_EQ(outside.bytes.active, 8 * kMiB);
}

TEST(OutsideMemory, OfBlocksBelowTenMiBIsInSegmentsOfTwenty) {
  Process process;
  process.trace.setup.bytes[0] = 9 * kMiB;
  EXPECT_EQ(outside_memory(process.trace).bytes.reserved, 20 * kMiB + 2 * kMiB);
}

// A program that was listened to from its start: the 12 MB have no storage, as a workspace of a
// file without them.
TEST(OutsideMemory, OfWhatHasNoStorageIsNothingWhereAllWasCountedFromTheStart) {
  Process process;
  process.trace.quality.adopted_allocations = 0;
  const OutsideMemory outside = outside_memory(process.trace);
  EXPECT_TRUE(outside.is_storage[process.batch.index()]);
  EXPECT_EQ(outside.is_setup, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(outside.bytes.active, 1024);
  EXPECT_EQ(process.planned().live.ranges.size(), 3U);
}

// DDP makes its buckets anew in its second step, which may be the first that is recorded.
TEST(OutsideMemory, WhatTheFirstRecordedStepMadeAndKeepsIsToo) {
  stowage::testing::MicroTrace t;
  const StorageId bucket = t.existing(24 * kMiB, StorageClass::other);
  t.set_up();
  t.begin_op();
  t.read(bucket);
  t.end_op();
  Trace trace = t.finish();
  trace.storages.evidence.assign(1, Evidence::none);
  trace.setup.event.back() = EventId(0);
  const OutsideMemory outside = outside_memory(trace);
  EXPECT_TRUE(outside.is_storage[bucket.index()]);
  EXPECT_EQ(outside.is_setup, std::vector<bool>{true});
  EXPECT_EQ(outside.bytes.reserved, 24 * kMiB);
}

TEST(OutsideMemory, WhatASetupFreesOrTheStepMakesIsNot) {
  Process process;
  stowage::Setup& setup = process.trace.setup;
  setup.bytes.insert(setup.bytes.end(), {0, 500});
  setup.free_of.insert(setup.free_of.end(), {0, -1});  // frees the 12 MB; a workspace
  setup.storage.insert(setup.storage.end(), 2, StorageId());
  setup.event.insert(setup.event.end(), 2, EventId());
  const OutsideMemory outside = outside_memory(process.trace);
  EXPECT_EQ(outside.is_setup, (std::vector<bool>{false, false, true, false, false}));
  EXPECT_EQ(outside.bytes.active, 1024);
}

TEST(OutsideMemory, HasNoPlaceAndCountsInWhatIsTaken) {
  const Process process;
  const PlannedMemory memory = process.planned();
  EXPECT_EQ(memory.live.ranges.size(), 2U) << "the parameter and what the step makes";
  EXPECT_EQ(memory.live.of_slot[process.batch.index()], -1);
  EXPECT_EQ(memory.live.of_setup, (std::vector<std::int32_t>{-1, -1, -1}));
  EXPECT_EQ(memory.placement.bytes(), 8 * kMiB);  // in pages of 2 MiB
  EXPECT_EQ(memory.placement.lower_bound, 7 * kMiB);
  const StepIndex index(process.trace);
  const Schedule schedule = resident_schedule(index);
  const PlannedBytes bytes = planned_bytes(index, schedule);
  EXPECT_EQ(bytes.bytes, 8 * kMiB + 14 * kMiB);
  EXPECT_EQ(bytes.lower_bound, 7 * kMiB + 12'000'256 + 1024);
  Schedule placed = schedule;
  placed.placement = PlacementMode::planned;
  const ReplayResult result = replay(index, placed);
  EXPECT_EQ(result.peak_reserved, bytes.bytes);
  EXPECT_EQ(result.peak_active, bytes.lower_bound);
}

}  // namespace
}  // namespace stowage::simulator
