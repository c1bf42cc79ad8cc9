#include "simulator/hazards/happens_before.h"

#include <gtest/gtest.h>

namespace stowage::simulator {
namespace {

// A further stream, as a host that steps the optimizer would be: one more number.
constexpr std::uint8_t kHost = h2d + 1;
static_assert(kHost < kMostStreams);

const EventId kAnywhere(std::size_t{0});

TEST(HappensBefore, AStreamIsInOrderAndBehindComputeSoFar) {
  Streams streams;
  const Access early = streams.on_compute(kAnywhere);
  const Access first = streams.on_stream(kHost, kAnywhere);
  const Access late = streams.on_compute(kAnywhere);
  const Access second = streams.on_stream(kHost, kAnywhere);
  EXPECT_EQ(first.stream, kHost);
  EXPECT_TRUE(ordered(early, first));
  EXPECT_TRUE(ordered(first, second));
  EXPECT_TRUE(ordered(late, second));
  EXPECT_FALSE(ordered(first, late));  // runs beside it
  EXPECT_FALSE(ordered(late, first));
}

// The gradient goes out, the host steps, the parameter comes back: each of the two waits is needed,
// and each alone is not enough.
TEST(HappensBefore, AHostStepBetweenAStoreAndALoad) {
  for (const bool waits_for_store : {false, true}) {
    for (const bool waits_for_step : {false, true}) {
      Streams streams;
      const Access made = streams.on_compute(kAnywhere);
      const Access store = streams.on_stream(d2h, kAnywhere);
      if (waits_for_store) streams.wait_for(store);
      const Access step = streams.on_stream(kHost, kAnywhere);
      if (waits_for_step) streams.wait_for(step);
      const Access load = streams.on_stream(h2d, kAnywhere);
      EXPECT_TRUE(ordered(made, step));
      EXPECT_EQ(ordered(store, step), waits_for_store);
      EXPECT_EQ(ordered(step, load), waits_for_step);
      // Through the step, or by compute itself.
      EXPECT_EQ(ordered(store, load), waits_for_store);
    }
  }
}

// A wait for the stream's later work counts for its earlier work and for all that this waited for;
// work of other streams is not meant.
TEST(HappensBefore, AWaitCountsForAllAhead) {
  Streams streams;
  const Access store = streams.on_stream(d2h, kAnywhere);
  streams.wait_for(store);
  const Access first = streams.on_stream(kHost, kAnywhere);
  const Access second = streams.on_stream(kHost, kAnywhere);
  const Access other = streams.on_stream(h2d, kAnywhere);
  const Access before = streams.on_compute(kAnywhere);
  EXPECT_FALSE(ordered(first, before));
  streams.wait_for(second);
  const Access behind = streams.on_compute(kAnywhere);
  EXPECT_TRUE(ordered(store, behind));
  EXPECT_TRUE(ordered(first, behind));
  EXPECT_TRUE(ordered(second, behind));
  EXPECT_FALSE(ordered(other, behind));
}

TEST(HappensBefore, AWaitForNothingOrdersNothing) {
  Streams streams;
  const Access work = streams.on_stream(kHost, kAnywhere);
  streams.wait_for({});
  EXPECT_FALSE(ordered(work, streams.on_compute(kAnywhere)));
}

}  // namespace
}  // namespace stowage::simulator
