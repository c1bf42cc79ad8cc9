// planner/copy_jobs: the two relaxations by hand, and against each other on random jobs.
#include "planner/copy_jobs.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace stowage::planner {
namespace {

// Two jobs at once, one byte a ns and two; a third, densest of all, from 150 ns on.
std::vector<CopyJob> three() {
  return {{0, 100, 90, 100}, {0, 100, 80, 200}, {150, 50, 50, 500}};
}

TEST(CopyJobs, EarliestTakesTheDensestThatIsThere) {
  const auto done = [](Bytes wanted) { return CopyJobs(three()).earliest_done(wanted); };
  EXPECT_EQ(done(0), 0);
  EXPECT_EQ(done(200), 100);        // the second job
  EXPECT_EQ(done(250), 150);        // and half of the first
  EXPECT_EQ(done(250 + 500), 200);  // then the third comes first
  EXPECT_EQ(done(800), 250);        // the rest of the first
  EXPECT_GT(done(801), 1'000'000'000);
}

TEST(CopyJobs, LeastMovingIsAFractionalKnapsack) {
  const auto moving = [](Bytes wanted) { return CopyJobs(three()).least_moving(wanted); };
  EXPECT_EQ(moving(0), 0);
  EXPECT_EQ(moving(250), 25);            // half of the third
  EXPECT_EQ(moving(600), 50 + 40);       // and half of the second
  EXPECT_EQ(moving(800), 50 + 80 + 90);  // all
  EXPECT_EQ(moving(900), 50 + 80 + 90);
}

TEST(CopyJobs, FreeJobsCountFirst) {
  const CopyJobs jobs({{0, 100, 100, 100}, {0, 0, 0, 70}});
  EXPECT_EQ(jobs.earliest_done(70), 0);
  EXPECT_EQ(jobs.earliest_done(100), 30);
  EXPECT_EQ(jobs.least_moving(100), 30);
  EXPECT_EQ(CopyJobs({{40, 0, 0, 70}, {90, 0, 0, 1}}).earliest_done(71), 90);
  EXPECT_EQ(CopyJobs({}).earliest_done(0), 0);
  EXPECT_EQ(CopyJobs({}).least_moving(5), 0);
}

// A lane that is done at t has moved bytes for no longer than t.
TEST(CopyJobs, MovingIsNeverLongerThanTheTimeItTakes) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<CopyJob> jobs;
    Bytes all = 0;
    for (std::size_t i = 0; i < 1 + seed % 7; ++i) {
      const auto size = static_cast<Nanoseconds>(1 + random() % 100);
      jobs.push_back({static_cast<Nanoseconds>(random() % 200), size,
                      size - static_cast<Nanoseconds>(random() % 2),
                      static_cast<Bytes>(1 + random() % 1000)});
      all += jobs.back().value;
    }
    for (Bytes wanted = 1; wanted <= all; wanted += 1 + all / 10) {
      const CopyJobs lane(jobs);
      ASSERT_LE(lane.least_moving(wanted), lane.earliest_done(wanted)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace stowage::planner
