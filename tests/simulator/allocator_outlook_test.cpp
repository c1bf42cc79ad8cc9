// The look ahead behind a step, by hand and against processes whose segments lie elsewhere.
#include "simulator/allocator/allocator_outlook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"
#include "tests/support/real_process.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;
using testing::RealProcess;

constexpr Bytes kMebi = 1 << 20;
constexpr int kMostLooksAhead = 4;

// As the executor does: looks, takes, and looks again until nothing is to be taken.
Outlook look_and_take(const AllocatorOutlook& outlook, RealProcess& process, int* looks = nullptr) {
  Outlook seen;
  for (int i = 0; i < kMostLooksAhead; ++i) {
    seen = outlook.look(process.observed(), process.first_serial());
    if (seen.buffers.empty()) break;
    process.reserve(seen.buffers);
    if (looks != nullptr) ++*looks;
  }
  return seen;
}

// The gradient of the step before goes only when the new one is there: the first step takes a
// segment of 28 MiB, the second one another, then they take turns.
Trace taking_turns() {
  MicroTrace t;
  t.existing(1000);
  const auto old = t.existing(0, StorageClass::gradient);
  t.repeat({old});
  t.set_up();
  t.alloc(28 * kMebi, StorageClass::gradient);
  t.free(old);
  return t.finish();
}

TEST(AllocatorOutlook, TakesNowWhatTheNextStepWould) {
  const Trace trace = taking_turns();
  const StepIndex index(trace);
  const Schedule schedule = resident_schedule(index);
  const AllocatorOutlook outlook(index, schedule);
  RealProcess process(index, schedule, 3);
  process.step();
  ASSERT_EQ(process.segments_taken(), (std::vector<Bytes>{2 * kMebi, 28 * kMebi}));
  const Outlook first = outlook.look(process.observed(), process.first_serial());
  ASSERT_TRUE(first.known) << first.described;
  EXPECT_EQ(first.segments, (std::vector<Bytes>{28 * kMebi}));
  EXPECT_EQ(first.buffers, (std::vector<Bytes>{28 * kMebi}));
  EXPECT_TRUE(first.holds);
  EXPECT_TRUE(first.is_steady);
  EXPECT_NE(first.described.find("29360128 bytes would be taken behind 0 steps"), std::string::npos)
      << first.described;
  process.reserve(first.buffers);
  const Outlook second = outlook.look(process.observed(), process.first_serial());
  EXPECT_TRUE(second.known && second.holds && second.is_steady && second.buffers.empty());
  for (int i = 0; i < 5; ++i) process.step();
  EXPECT_EQ(process.segments_taken().size(), 3U);
}

TEST(AllocatorOutlook, TakesNothingThatThereIsNoRoomFor) {
  const Trace trace = taking_turns();
  const StepIndex index(trace);
  const Schedule schedule = resident_schedule(index);
  RealProcess process(index, schedule, kFalling);
  process.step();
  ObservedAllocator observed = process.observed();
  observed.room = 28 * kMebi - 1;
  const Outlook seen = AllocatorOutlook(index, schedule).look(observed, process.first_serial());
  EXPECT_TRUE(seen.known);
  EXPECT_FALSE(seen.holds);
  EXPECT_TRUE(seen.buffers.empty());
}

// Somebody keeps one more allocation of the gradient's size, or nothing of the step is there.
TEST(AllocatorOutlook, SaysNothingWhereTheStepLeftSomethingElseBehind) {
  const Trace trace = taking_turns();
  const StepIndex index(trace);
  const Schedule schedule = resident_schedule(index);
  const AllocatorOutlook outlook(index, schedule);
  RealProcess process(index, schedule, kFalling);
  process.step();
  process.hold(5 * kMebi);  // of another size: that stays, and changes nothing
  EXPECT_TRUE(outlook.look(process.observed(), process.first_serial()).known);
  process.hold(28 * kMebi);
  const Outlook twice = outlook.look(process.observed(), process.first_serial());
  EXPECT_FALSE(twice.known);
  EXPECT_TRUE(twice.buffers.empty());
  EXPECT_NE(twice.described.find("left 2 allocations of 29360128 bytes behind, recorded were 1"),
            std::string::npos)
      << twice.described;
  const Outlook none = outlook.look(process.observed(), process.first_serial() + 1000);
  EXPECT_FALSE(none.known);
  EXPECT_TRUE(none.buffers.empty());
}

// A storage that the step frees and never makes again.
TEST(AllocatorOutlook, SaysNothingOfAStepThatDoesNotRepeat) {
  MicroTrace t;
  const auto old = t.existing(3 * kMebi, StorageClass::gradient);
  t.set_up();
  t.free(old);
  t.alloc(2 * kMebi);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const Schedule schedule = resident_schedule(index);
  RealProcess process(index, schedule, kFalling);
  process.step();
  const AllocatorOutlook outlook(index, schedule);
  EXPECT_FALSE(outlook.look(process.observed(), process.first_serial()).known);
  EXPECT_TRUE(outlook.layout_after(process.observed(), process.first_serial(), 1).empty());
}

// The optimizer's state is as large as the gradients, and the first step makes it: behind one
// gradient, ahead of the other.
TEST(AllocatorOutlook, TellsGradientsFromWhatTheFirstStepMakes) {
  MicroTrace t;
  const auto old_a = t.existing(0, StorageClass::gradient);
  const auto old_b = t.existing(0, StorageClass::gradient);
  t.repeat({old_a, old_b});
  t.set_up({30 * kMebi});
  t.free(old_a);
  t.free(old_b);
  t.alloc(3 * kMebi, StorageClass::gradient);
  t.made_by_first_step(3 * kMebi);
  t.alloc(3 * kMebi, StorageClass::gradient);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  const Schedule schedule = resident_schedule(index);
  const AllocatorOutlook outlook(index, schedule);
  RealProcess process(index, schedule, kFalling);
  process.step();
  const auto predicted = outlook.layout_after(process.observed(), process.first_serial(), 1);
  process.step();
  EXPECT_EQ(predicted, process.layout());
  // Behind the second step nothing of it is made any more.
  const auto next = outlook.layout_after(process.observed(), process.first_serial(), 1);
  process.step();
  EXPECT_EQ(next, process.layout());
  EXPECT_EQ(process.segments_taken().size(), 1U);
}

TEST(AllocatorOutlook, HoldsForProcessesWithTheirSegmentsAnywhere) {
  int would_take = 0;
  int took = 0;
  int again = 0;  // segments came to lie otherwise than foreseen, and that mattered
  int layouts = 0;
  int wrapping = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::RandomTraceOptions options;
    options.ops = 4 + static_cast<int>(seed % 12);
    options.setup = true;
    options.device_times = true;
    options.parameters = seed >= 100;
    options.unit = Bytes{4} << (seed % 6 * 3);
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
    const AllocationSequence sequence = allocation_sequence(index, schedule);
    const AllocatorOutlook outlook(index, schedule);
    wrapping += !sequence.wrapping.empty();
    for (AddressOrder order = 0; order < 4; ++order) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " order " << order);
      RealProcess process(index, schedule, order);
      process.step();
      if (seed % 3 == 0) process.hold(static_cast<Bytes>(seed) * 10'007 + 13);
      const ObservedAllocator observed = process.observed();
      const Outlook first = outlook.look(observed, process.first_serial());
      ASSERT_TRUE(first.known) << first.described;
      // Nothing is touched: a process that looks and takes nothing goes on as foreseen.
      RealProcess plain(index, schedule, order);
      plain.step();
      if (seed % 3 == 0) plain.hold(static_cast<Bytes>(seed) * 10'007 + 13);
      std::size_t taken = plain.segments_taken().size();
      std::int32_t steps = 0;
      for (; steps < 30 && plain.segments_taken().size() == taken; ++steps) {
        plain.step();
        if (plain.segments_taken().size() > taken || !sequence.made_before.empty()) continue;
        ++layouts;
        ASSERT_EQ(outlook.layout_after(observed, process.first_serial(), steps + 1),
                  plain.layout());
      }
      const bool takes = plain.segments_taken().size() > taken;
      const std::string behind = "behind " + std::to_string(steps - 1) + " steps; with";
      ASSERT_TRUE(!takes || first.described.find(behind) != std::string::npos)
          << first.described << " but " << steps;
      if (first.segments.empty() && first.holds) {
        ASSERT_FALSE(takes);
      }
      would_take += takes;
      int looks = 0;
      const Outlook last = look_and_take(outlook, process, &looks);
      ASSERT_TRUE(last.known);
      took += looks > 0;
      again += looks > 1;
      taken = process.segments_taken().size();
      const std::int32_t promised = last.is_steady ? 60 : std::min(last.periods, 60);
      for (std::int32_t i = 0; last.buffers.empty() && last.holds && i < promised; ++i) {
        process.step();
        ASSERT_EQ(process.segments_taken().size(), taken) << last.described << " in step " << i;
      }
    }
  }
  EXPECT_GT(wrapping, 40);
  EXPECT_GT(would_take, 60);
  EXPECT_GE(took, would_take);
  EXPECT_GT(layouts, 1000);
  RecordProperty("looked_again", again);
}

// In what is left of the slots of 20 and 10 MiB, from the lowest on, then below all.
TEST(SegmentAddresses, GoOnBehindThoseThatThereAre) {
  SegmentAddresses before;
  std::vector<SegmentAddresses::Range> taken;
  for (const Bytes mib : {20, 40, 10, 2, 64, 20}) {
    taken.push_back({before.take(mib * kMebi), mib * kMebi});
  }
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  SegmentAddresses behind(taken);
  for (const Bytes mib : {2, 10, 20, 4, 64, 12, 2}) {
    EXPECT_EQ(behind.take(mib * kMebi), before.take(mib * kMebi)) << mib;
  }
}

// An allocator that goes on where another one is does what that one does.
TEST(CachingAllocator, GoesOnWhereAnotherOneIs) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    CachingAllocator first;
    std::vector<CachingAllocator::Block> live;
    const auto bytes = [&] {
      return static_cast<Bytes>(random() % (random() % 3 == 0 ? 40'000'000 : 600'000)) + 1;
    };
    for (int i = 0; i < 80; ++i) {
      live.push_back(first.allocate(bytes()));
      if (random() % 2 == 0) continue;
      const std::size_t row = random() % live.size();
      first.free(live[row]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(row));
    }
    const std::vector<ObservedBlock> blocks = first.observed();
    CachingAllocator second(blocks);
    ASSERT_EQ(second.layout(), first.layout());
    ASSERT_EQ(second.active(), first.active());
    ASSERT_EQ(second.reserved(), first.reserved());
    for (const CachingAllocator::Block block : live) {
      if (random() % 3 == 0) continue;
      const auto same = std::find_if(blocks.begin(), blocks.end(), [&](const ObservedBlock& each) {
        return each.address == first.address_of(block);
      });
      ASSERT_NE(same, blocks.end());
      first.free(block);
      second.free(static_cast<CachingAllocator::Block>(same - blocks.begin()));
    }
    ASSERT_EQ(second.layout(), first.layout()) << seed;
    for (int i = 0; i < 60; ++i) {
      const Bytes size = bytes();
      const auto a = first.allocate(size);
      const auto b = second.allocate(size);
      ASSERT_EQ(first.address_of(a), second.address_of(b)) << seed;
      if (random() % 2 == 0) continue;
      first.free(a);
      second.free(b);
    }
    ASSERT_EQ(second.layout(), first.layout()) << seed;
  }
}

}  // namespace
}  // namespace stowage::simulator
