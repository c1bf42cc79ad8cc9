// The first step's allocations beside the recorded step's, on fabricated records.
#include "profiler/assembly/first_step.h"

#include <gtest/gtest.h>

#include "profiler/assembly/assemble.h"
#include "tests/profiler/fabricated_recording.h"
#include "tests/profiler/fabricated_timing.h"
#include "traces/validate.h"

namespace stowage::profiler {
namespace {

using testing::FabricatedRecording;

using EventRows = std::vector<std::int32_t>;
using Sizes = std::vector<Bytes>;

constexpr std::int64_t kFirst = 1000;  // serials of the first step, which is long over

// The recorded step: 0 begin, 1 alloc 100, 2 alloc 200, 3 free of the 200, 4 alloc 300, 5 free of
// it, 6 free of the 100, 7 end. Existing: a parameter, then `lasting` by the first step's serials,
// made in it, which the tests put into the setup.
RawRecording recorded(const Sizes& lasting) {
  FabricatedRecording r;
  r.existing(1000);
  std::vector<std::int64_t> made;
  for (const Bytes bytes : lasting) made.push_back(r.existing(bytes, StorageClass::other));
  const auto a = r.alloc(100);
  const auto b = r.alloc(200);
  r.free_in_both(b);
  const auto c = r.alloc(300);
  r.free_in_both(c);
  r.free_in_both(a);
  RawRecording recording = r.finish(100);
  for (std::size_t i = 0; i < made.size(); ++i) {
    recording.structure.live_at_begin[i + 1].serial = kFirst + 50 + static_cast<std::int64_t>(i);
    recording.structure.live_at_begin[i + 1].storage_class = StorageClass::workspace;
  }
  recording.setup = {{1, 1000, false, false}};
  recording.env.device = "cuda";
  return recording;
}

RawSetup made(std::int64_t serial, Bytes bytes) {
  return {kFirst + serial, bytes, false, true};
}
RawSetup gone(std::int64_t serial) {
  return {kFirst + serial, 0, true, true};
}

Setup setup_of(RawRecording recording, const std::vector<RawSetup>& first_step) {
  recording.setup.insert(recording.setup.end(), first_step.begin(), first_step.end());
  const testing::FabricatedTiming timing(recording.structure);
  recording.timing = timing.timing;
  const Result<Trace> trace = assemble(recording);
  EXPECT_TRUE(trace.ok()) << trace.error().text();
  const Status status = validate(*trace, "fabricated");
  EXPECT_TRUE(status.ok()) << status.error().text();
  return trace->setup;
}

EventRows events(const Setup& setup) {
  EventRows rows;
  for (const EventId event : setup.event) rows.push_back(event.value);
  return rows;
}
EventRows storages(const Setup& setup) {
  EventRows rows;
  for (const StorageId storage : setup.storage) rows.push_back(storage.value);
  return rows;
}

// 64 behind the free of the 200, 32 behind everything: at their places.
TEST(FirstStep, ExtrasInTheMiddleAndAtTheEnd) {
  const auto setup =
      setup_of(recorded({64, 32}), {made(1, 100), made(2, 200), gone(2), made(50, 64), made(3, 300),
                                    gone(3), gone(1), made(51, 32)});
  EXPECT_EQ(setup.bytes, (Sizes{1000, 64, 32}));
  EXPECT_EQ(events(setup), (EventRows{-1, 3, 6}));
  EXPECT_EQ(storages(setup), (EventRows{0, 1, 2}));
}

// Ahead of the step's first allocation there is its begin. A size that the step needs too does not
// confuse: what lasts is known.
TEST(FirstStep, ExtraAheadOfEverything) {
  const auto setup = setup_of(
      recorded({100}), {made(50, 100), made(1, 100), made(2, 200), gone(2), made(3, 300), gone(3)});
  EXPECT_EQ(setup.bytes, (Sizes{1000, 100}));
  EXPECT_EQ(events(setup), (EventRows{-1, 0}));
}

// 5000 bytes are needed once; 7 outlive the first step, but not the next.
TEST(FirstStep, WhatIsNeededOnce) {
  const auto setup = setup_of(recorded({}), {made(1, 100), made(9, 5000), made(2, 200), gone(9),
                                             gone(2), made(8, 7), made(3, 300), gone(3), gone(1)});
  EXPECT_EQ(setup.bytes, (Sizes{1000, 5000, 0, 7, 0}));
  EXPECT_EQ(setup.free_of, (EventRows{-1, -1, 1, -1, 3}));
  EXPECT_EQ(events(setup), (EventRows{-1, 1, 2, 3, 7}));
}

// Something made ahead of the step goes in the first one.
TEST(FirstStep, FreesWhatWasThereBefore) {
  RawRecording recording = recorded({});
  recording.setup.push_back({kFirst, 4096, false, false});
  const auto setup =
      setup_of(recording, {made(1, 100), gone(0), made(2, 200), gone(2), made(3, 300), gone(3)});
  EXPECT_EQ(setup.bytes, (Sizes{1000, 4096, 0}));
  EXPECT_EQ(setup.free_of, (EventRows{-1, -1, 1}));
  EXPECT_EQ(events(setup), (EventRows{-1, -1, 1}));
}

// The first step leaves out the 300: nothing is known of the order, what lasts comes ahead of it.
TEST(FirstStep, MisalignedFallsBack) {
  const std::vector<RawSetup> first{made(1, 100), made(50, 64), made(9, 5000), gone(9),
                                    made(2, 200), gone(2),      gone(1)};
  RawRecording recording = recorded({64});
  const auto setup = setup_of(recording, first);
  EXPECT_EQ(setup.bytes, (Sizes{1000, 64}));
  EXPECT_EQ(events(setup), (EventRows{-1, -1}));
  EXPECT_EQ(storages(setup), (EventRows{0, 1}));
  recording.setup = first;
  EXPECT_FALSE(first_step_extras(recording.setup, recording.structure).has_value());
}

// A free that the recorded step does behind its next allocation says nothing of the place.
TEST(FirstStep, AFreeElsewhereMovesNothing) {
  const auto setup = setup_of(recorded({64}), {made(1, 100), gone(1), made(50, 64), made(2, 200),
                                               gone(2), made(3, 300), gone(3)});
  EXPECT_EQ(events(setup), (EventRows{-1, 1}));
}

// A gradient that is kept (64, 300) is an extra. The 300 that the recorded step makes and adds to
// it the first step does not make beside.
TEST(FirstStep, GradientsThatAreKept) {
  RawRecording recording = recorded({64, 300});
  recording.structure.live_at_begin[1].storage_class = StorageClass::gradient;
  recording.structure.live_at_begin[2].storage_class = StorageClass::gradient;
  const auto setup = setup_of(
      recording, {made(1, 100), made(50, 64), made(2, 200), gone(2), made(51, 300), gone(1)});
  EXPECT_EQ(setup.bytes, (Sizes{1000, 64, 300}));
  EXPECT_EQ(events(setup), (EventRows{-1, 1, 3}));
  EXPECT_EQ(storages(setup), (EventRows{0, 1, 2}));
}

}  // namespace
}  // namespace stowage::profiler
