// planner/set_builder and planner/footprint_changes: segments give the peaks that positions give.
#include "planner/set_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/micro_trace.h"

namespace stowage::planner {
namespace {

// How everything that can leave does: a random choice, where that is allowed.
std::vector<Choice> random_way(const Footprints& footprints, std::mt19937_64& random) {
  std::vector<Choice> way;
  for (const Movable& movable : footprints.movable()) {
    const auto c = random() % kChoices;
    way.push_back(movable.allows(static_cast<Choice>(c)) ? static_cast<Choice>(c) : Choice::keep);
  }
  return way;
}

TEST(SetBuilder, PeaksAreThoseOfTheCurve) {
  int peaks = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    testing::RandomTraceOptions options;
    options.parameters = seed % 2 == 0;
    const Trace trace = testing::random_trace(seed, options);
    const simulator::StepIndex index(trace);
    const Footprints footprints(index);
    const FootprintChanges changes(footprints);
    ASSERT_LE(changes.segments(), static_cast<std::size_t>(footprints.positions()));
    std::mt19937_64 random(seed);
    const std::vector<Choice> way = random_way(footprints, random);
    SetBuilder builder(changes);
    for (int round = 0; round < 30 && !way.empty(); ++round) {
      const std::size_t m = random() % way.size();
      builder.set(m, builder.choices()[m] == way[m] ? Choice::keep : way[m]);
      const std::vector<Bytes> curve = footprints.curve(builder.choices());
      ASSERT_EQ(builder.peak(), *std::max_element(curve.begin(), curve.end())) << "seed " << seed;
      ++peaks;
    }
  }
  EXPECT_GT(peaks, 4000);
}

TEST(SetBuilder, FillsToTheTargetOrSaysThatItCannot) {
  int filled = 0;
  int not_filled = 0;
  int in_both_ways = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    testing::RandomTraceOptions options;
    options.parameters = seed % 2 == 0;
    const Trace trace = testing::random_trace(seed, options);
    const simulator::StepIndex index(trace);
    const Footprints footprints(index);
    const FootprintChanges changes(footprints);
    std::mt19937_64 random(seed);
    const std::vector<Choice> way = random_way(footprints, random);
    std::vector<WayOut> order;
    for (std::size_t m = 0; m < way.size(); ++m) {
      if (footprints.movable()[m].is_layer()) {
        order.push_back({m, Choice::forward});
        order.push_back({m, Choice::backward});
      } else {
        order.push_back({m, way[m]});
      }
    }
    std::shuffle(order.begin(), order.end(), random);
    const Bytes resident =
        *std::max_element(footprints.resident().begin(), footprints.resident().end());
    for (int percent = 50; percent <= 100; percent += 10) {
      SetBuilder builder(changes);
      const Bytes target = resident * percent / 100;
      if (!builder.fill(order, target)) {
        ASSERT_GT(builder.peak(), target);
        ++not_filled;
        continue;
      }
      ++filled;
      ASSERT_LE(builder.peak(), target);
      const std::vector<Choice> before = builder.choices();
      builder.prune(order, target);
      ASSERT_LE(builder.peak(), target);
      for (std::size_t m = 0; m < before.size(); ++m) {
        const Choice now = builder.choices()[m];
        ASSERT_TRUE(now == Choice::keep || now == before[m] || before[m] == Choice::always);
        const Choice without_one = without(before[m], Choice::forward);
        ASSERT_TRUE(before[m] != Choice::always || without_one == Choice::backward);
        in_both_ways += now == Choice::always ? 1 : 0;
      }
    }
  }
  EXPECT_GT(filled, 150);
  EXPECT_GT(not_filled, 50);
  EXPECT_GT(in_both_ways, 10);
}

}  // namespace
}  // namespace stowage::planner
