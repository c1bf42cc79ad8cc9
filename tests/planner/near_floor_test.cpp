// Near the memory floor, where little more memory is much of the step, more of it is not slower.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "planner/points_near_floor.h"
#include "simulator/step/step_index.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

TEST(PointsNearFloor, AreThoseOfASmallerBudgetAndMore) {
  constexpr Bytes kFloor = 12'800;
  EXPECT_TRUE(points_near_floor(kFloor, kFloor).empty());
  EXPECT_TRUE(points_near_floor(kFloor, kFloor + 100).empty());
  EXPECT_EQ(points_near_floor(kFloor, kFloor + 101), (std::vector<Bytes>{12'900}));
  EXPECT_EQ(points_near_floor(kFloor, kFloor + 1'600),
            (std::vector<Bytes>{12'900, 13'000, 13'200, 13'600}));
  EXPECT_TRUE(points_near_floor(kFloor, kFloor + 1'601).empty());
}

// With a search of its own alone the second budget was slower by the part that stands behind it.
struct NearFloorCase {
  const char* sample;
  std::vector<Bytes> budgets;
};
void PrintTo(const NearFloorCase& of, std::ostream* to) {
  *to << of.sample;
}

class NearFloor : public ::testing::TestWithParam<NearFloorCase> {};

TEST_P(NearFloor, MoreMemoryOfASampleIsNotSlower) {
  const auto loaded = load_trace(std::string(STOWAGE_SOURCE_DIR "/traces/samples/") +
                                 GetParam().sample + ".trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const simulator::StepIndex index(loaded->trace);
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  for (const Bytes budget : GetParam().budgets) {
    SCOPED_TRACE(budget);
    PlanRequest request;
    request.budget = budget;
    request.budget_on = simulator::PeakKind::reserved;
    request.placement = simulator::PlacementMode::planned;
    const auto outcome = make_plan(index, request);
    ASSERT_TRUE(outcome) << outcome.error().text();
    ASSERT_EQ(outcome->kind, PlanKind::planned);
    const Nanoseconds step = outcome->predicted.step_ns;
    EXPECT_LE(step - least, least / 200);
    least = std::min(least, step);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Samples, NearFloor,
    ::testing::Values(
        NearFloorCase{"gpt2-l2-adamw-bf16-h100", {1'392'870'002, 1'397'414'440}},         // 8 %
        NearFloorCase{"gpt2-fp32-h200", {5'081'928'143, 5'099'361'858}},                  // 5 %
        NearFloorCase{"llama3-8b-l9-tf32-math-h200", {13'298'753'863, 13'303'072'916}}),  // 29 %
    [](const auto& each) {
      std::string name = each.param.sample;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace stowage::planner
