// What `verify` fails for, on runs written by hand.
#include "cli/torch/judgement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cli/torch/reference_steps.h"

namespace stowage::cli {
namespace {

// A run on a GPU that meets every demand.
Verification good() {
  Verification v;
  v.compared_steps = 3;
  v.planned.steps.resize(12);
  v.planned.peak_requested = v.predicted.peak_requested = 900'000;
  v.planned.peak_active = v.predicted.peak_active = 1'000'000;
  v.planned.peak_reserved = v.predicted.peak_reserved = 2'000'000;
  v.planned.host_bytes = v.predicted.host = 5000;
  v.planned.driver_allocations_after_first_step = 1;
  v.planned.pinned_after_first_step = 0;
  return v;
}

Demands demands() {
  Demands demands;
  demands.moves = true;
  demands.allocator_exact = true;
  demands.later_segments = 1;
  return demands;
}

struct Case {
  const char* name;
  const char* failure;  // words of it
  std::function<void(Verification&, Demands&)> change;
};

class Failure : public ::testing::TestWithParam<Case> {};

TEST_P(Failure, IsOneLine) {
  Verification v = good();
  Demands d = demands();
  ASSERT_TRUE(judge(v, d).failures.empty()) << judge(v, d).failures.front();
  GetParam().change(v, d);
  const Judgement judgement = judge(v, d);
  ASSERT_EQ(judgement.failures.size(), 1U);
  EXPECT_NE(judgement.failures[0].find(GetParam().failure), std::string::npos)
      << judgement.failures[0];
  EXPECT_EQ(judgement.failures[0].find('\n'), std::string::npos);
  EXPECT_TRUE(judgement.remarks.empty());
}

executor::DumpDifference differ(const char* name, double apart) {
  executor::DumpDifference difference;
  difference.bitwise = false;
  difference.within_tolerance = false;
  difference.max_abs_diff = apart;
  difference.first = name;
  difference.tensors = 9;
  difference.differing = 1;
  difference.each = {{name, apart}};
  return difference;
}

INSTANTIATE_TEST_SUITE_P(
    All, Failure,
    ::testing::Values(
        Case{"results", "1 of 9 tensors differ, first step 1 gradient w",
             [](Verification& v, Demands&) { v.difference = differ("step 1 gradient w", 0.5); }},
        Case{"beyond_its_own_noise", "step 1 gradient w differs by up to 0.5",
             [](Verification& v, Demands&) {
               v.difference = differ("step 1 gradient w", 0.5);
               v.repeatability = differ("step 1 gradient loud", 100);
             }},
        Case{"digests", "digests do not tell whether the plan changes more",
             [](Verification& v, Demands&) {
               v.difference = differ("step 1 gradient w", 0);
               v.difference.forget_magnitude();
               v.repeatability = differ("step 1 gradient w", 100);
             }},
        Case{"digests_of_a_kept_reference", "digests do not tell whether the plan changes more",
             [](Verification& v, Demands&) {
               v.difference = differ("step 0 loss", 0.5);
               v.repeatability = differ("step 0 loss", 0.5);
               v.repeatability.forget_magnitude();
             }},
        Case{"loss", "the loss of step 2 is not a number",
             [](Verification& v, Demands&) { v.planned.steps[2].loss = NAN; }},
        Case{"plan", "left its plan: other shape",
             [](Verification& v, Demands&) {
               v.planned.on_plan = false;
               v.planned.first_difference = "other shape";
             }},
        Case{"unplanned_stores",
             "a steady step stored 4.00 kB (4,000 bytes) of parameters or optimizer state beside",
             [](Verification& v, Demands&) { v.planned.unplanned_stored_bytes = 4000; }},
        // It has left its plan: that says it all.
        Case{"unplanned_stores_off_plan", "left its plan: other shape",
             [](Verification& v, Demands&) {
               v.planned.on_plan = false;
               v.planned.first_difference = "other shape";
               v.planned.unplanned_stored_bytes = 4000;
             }},
        Case{"requested", "requested of 900 kB (900,000 bytes) is -1 bytes off the predicted",
             [](Verification& v, Demands&) { ++v.predicted.peak_requested; }},
        Case{"requested_constant", "requested differs between steady steps",
             [](Verification& v, Demands&) { v.planned.peaks_constant = false; }},
        Case{"host", "the host memory of",
             [](Verification& v, Demands&) { ++v.planned.host_bytes; }},
        Case{"budget", "is above the plan's budget of",
             [](Verification&, Demands& d) {
               d.budget.on = simulator::PeakKind::active;
               d.budget.device = 999'999;
             }},
        Case{"host_budget", "the host memory of 5.00 kB (5,000 bytes) is above the plan's host",
             [](Verification&, Demands& d) { d.budget.host = 4999; }},
        Case{"active", "-1,001 bytes off the predicted 1,001,001, more than 0.1 %",
             [](Verification& v, Demands&) { v.predicted.peak_active = 1'001'001; }},
        Case{"active_constant", "active differs between steady steps",
             [](Verification& v, Demands&) { v.planned.active_constant = false; }},
        Case{"reserved_constant", "reserved differs between steady steps",
             [](Verification& v, Demands& d) {
               v.planned.reserved_constant = false;
               v.planned.driver_allocations_after_first_step = 0;
               d.later_segments = 0;
               d.active_varies = true;
             }},
        Case{"pinned", "1 block of host memory pinned after the first step",
             [](Verification& v, Demands&) { v.planned.pinned_after_first_step = 1; }},
        Case{"driver", "from the driver 2 times after the first step, predicted 1",
             [](Verification& v, Demands&) { v.planned.driver_allocations_after_first_step = 2; }},
        Case{"driver_unpredicted", "from the driver 1 time after the first step",
             [](Verification&, Demands& d) { d.allocator_exact = false; }}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Judgement, ATimeOfCopiesIsNoneOfTheStepWithoutThePlan) {
  MeasuredRun reference;
  reference.facts["seed"] = "1";
  EXPECT_TRUE(has_times(reference));
  MeasuredRun through_host = reference;
  through_host.facts[kUpdatedOnHost] = "3 7";
  EXPECT_FALSE(has_times(through_host));
  reference.too_large = TooLarge{2000, 1000};
  EXPECT_FALSE(has_times(reference));
}

TEST(Judgement, LimitsAreMet) {
  Verification v = good();
  Demands exact = demands();
  exact.budget.device = v.planned.peak_active;
  exact.budget.host = v.planned.host_bytes;
  EXPECT_TRUE(judge(v, exact).failures.empty());
  EXPECT_TRUE(budget_failures(v.planned, exact.budget).empty());
  v.predicted.peak_active = 1'001'000;  // 0.1 % of what was measured
  v.planned.driver_allocations_after_first_step = 0;
  EXPECT_TRUE(judge(v, demands()).failures.empty());
  v.difference = differ("step 1 gradient w", 0.5);
  v.repeatability = differ("step 0 gradient w", 0.5);
  EXPECT_TRUE(judge(v, demands()).failures.empty());
  v.repeatability = {};
  v.difference.within_tolerance = true;
  EXPECT_EQ(judge(v, demands()).failures.size(), 1U);
  Demands tolerant = demands();
  tolerant.tolerance_given = true;
  EXPECT_TRUE(judge(v, tolerant).failures.empty());
}

TEST(Judgement, ActiveMayVaryWhereTheReplaySaysSo) {
  Verification v = good();
  Demands d = demands();
  v.planned.active_constant = false;
  d.active_varies = true;
  EXPECT_TRUE(judge(v, d).failures.empty());
  d.allocator_exact = false;
  v.planned.driver_allocations_after_first_step = 0;
  EXPECT_EQ(judge(v, d).failures.size(), 1U);
}

// What the allocator's replay cannot foresee is said, not judged.
TEST(Judgement, RemarksWhereThePredictionIsAnEstimate) {
  Verification v = good();
  Demands d = demands();
  d.allocator_exact = false;
  d.moves = false;
  v.predicted.peak_active = 1'100'000;
  const Judgement judgement = judge(v, d);
  EXPECT_TRUE(judgement.failures.empty());
  ASSERT_EQ(judgement.remarks.size(), 2U);
  EXPECT_NE(judgement.remarks[0].find("the prediction is an estimate"), std::string::npos);
  EXPECT_NE(judgement.remarks[1].find("the plan moves nothing"), std::string::npos);
}

// Of an allocator that predictions are not of only what is no matter of its own is judged.
TEST(Judgement, AnotherAllocatorIsRemarkedOnButInPlannedMemory) {
  Verification v = good();
  Demands d = demands();
  v.planned.other_allocator = "cudaMallocAsync";
  v.planned.driver_allocations_after_first_step = -1;
  v.planned.peak_active *= 2;
  v.planned.peak_reserved *= 2;
  v.planned.active_constant = v.planned.reserved_constant = false;
  Judgement judgement = judge(v, d);
  EXPECT_TRUE(judgement.failures.empty());
  ASSERT_EQ(judgement.remarks.size(), 1U);
  EXPECT_NE(judgement.remarks[0].find("cudaMallocAsync"), std::string::npos);
  v.planned.pinned_after_first_step = 1;
  ++v.planned.peak_requested;
  EXPECT_EQ(judge(v, d).failures.size(), 2U);
  d.placed = true;
  EXPECT_GT(judge(v, d).failures.size(), 4U) << "there it is our own";
  d.placed = false;
  d.budget.device = v.planned.peak_active - 1;
  EXPECT_EQ(judge(v, d).failures.size(), 3U) << "a budget is";
}

TEST(Judgement, ADeviceWithoutCountersHasNone) {
  Verification v = good();
  v.planned.peak_reserved = -1;
  v.planned.driver_allocations_after_first_step = -1;
  v.planned.pinned_after_first_step = -1;
  v.planned.active_constant = false;
  v.predicted.peak_active = 0;
  const Judgement judgement = judge(v, demands());
  EXPECT_TRUE(judgement.failures.empty());
  EXPECT_TRUE(judgement.remarks.empty());
}

}  // namespace
}  // namespace stowage::cli
