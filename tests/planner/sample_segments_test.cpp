// On the recorded GPU traces no step behind the first one takes memory from the driver, under each
// policy and `auto`: what it would take is taken ahead; and where that does not last, whatever the
// addresses, behind the first step.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "simulator/allocator/allocator_outlook.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/lowering/lowering.h"
#include "simulator/step/plan_structure.h"
#include "tests/support/real_process.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

constexpr int kSteps = 120;
constexpr const char* kEnding = ".trace.json.gz";

std::vector<std::string> recorded_on_an_h200() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(STOWAGE_SOURCE_DIR "/traces/samples")) {
    const std::string file = entry.path().filename().string();
    const std::size_t end = file.find(kEnding);
    if (file.find("-h200") != std::string::npos && end != std::string::npos) {
      names.push_back(file.substr(0, end));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// As an executor does it: what is known is taken ahead of the first step, the rest behind it.
void expect_none_taken_behind_a_look(const simulator::AllocatorOutlook& outlook,
                                     const std::vector<Bytes>& ahead,
                                     testing::RealProcess& process) {
  process.reserve(ahead);
  process.step();
  for (int looks = 0; looks < 4; ++looks) {
    const auto seen = outlook.look(process.observed(), process.first_serial());
    ASSERT_TRUE(seen.known && seen.holds) << seen.described;
    if (seen.buffers.empty()) break;
    process.reserve(seen.buffers);
  }
  const std::size_t taken = process.segments_taken().size();
  for (int i = 0; i < kSteps; ++i) {
    process.step();
    ASSERT_EQ(process.segments_taken().size(), taken) << "step " << i;
  }
}

class EachSampleSegments : public ::testing::TestWithParam<std::string> {};

TEST_P(EachSampleSegments, NoneIsTakenBehindTheFirstStep) {
  const std::string file = STOWAGE_SOURCE_DIR "/traces/samples/" + GetParam() + kEnding;
  const auto loaded = load_trace(file);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  const simulator::StepIndex index(loaded->trace);
  const auto resident = simulator::replay(index, simulator::resident_schedule(index));
  int plans = 0;
  int ahead = 0;
  int later = 0;
  const auto check = [&](const std::string& policy, std::optional<Bytes> budget) {
    PlanRequest request;
    request.policy = policy;
    request.budget = budget;
    const auto outcome = make_plan(index, request);
    ASSERT_TRUE(outcome.ok()) << file << outcome.error().text();
    const auto step = simulator::unroll(loaded->trace, outcome->plan);
    ASSERT_TRUE(step.ok()) << step.error().text();
    const simulator::StepIndex planned(*step);
    const auto lowered = simulator::lower(planned, outcome->plan);
    ASSERT_TRUE(lowered.ok()) << lowered.error().text();
    const auto allocator = simulator::replay_allocator(planned, lowered->schedule);
    EXPECT_TRUE(allocator.is_complete) << file << " " << policy;
    ahead += !allocator.segments_ahead.empty();
    if (!allocator.later_segments.empty()) {
      SCOPED_TRACE(file + " " + policy);
      ++later;
      testing::RealProcess process(planned, lowered->schedule, 0);
      expect_none_taken_behind_a_look({planned, lowered->schedule}, allocator.buffers_ahead,
                                      process);
    }
    ++plans;
  };
  for (const PolicyInfo& policy : policies()) {
    if (policy.recomputes && loaded->trace.layer_tensors.size() == 0) continue;
    if (policy.divides == Divides::always) continue;  // it was not recorded so
    if (policy.name != "auto") check(policy.name, std::nullopt);
  }
  check("auto", resident.peak_active / 4 * 3);
  check("auto", resident.peak_active * 11 / 20);
  EXPECT_GE(plans, 7);
  // Both cases do occur: something to take ahead, and something behind the first step.
  if (GetParam().starts_with("llama3-8b-l9-fp32")) {
    EXPECT_GE(ahead, 1);
  }
  if (GetParam().starts_with("mlp")) {
    EXPECT_EQ(later, 1);
  }
  EXPECT_LE(later, 1) << "of " << plans << " plans";
}

INSTANTIATE_TEST_SUITE_P(Samples, EachSampleSegments, ::testing::ValuesIn(recorded_on_an_h200()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Plans that stream parameters and under which the allocator wanders: what holds for the addresses
// of one process does not hold for those of another.
TEST(SampleSegments, ALookBehindTheFirstStepHoldsWhateverTheAddresses) {
  int processes = 0;
  int taking = 0;  // without the look
  for (const std::string name : {"gpt2-bf16", "vit-fp32"}) {
    const auto loaded =
        load_trace(STOWAGE_SOURCE_DIR "/traces/samples/" + name + "-h200.trace.json.gz");
    ASSERT_TRUE(loaded.ok()) << loaded.error().text();
    const simulator::StepIndex index(loaded->trace);
    const auto resident = simulator::replay(index, simulator::resident_schedule(index));
    PlanRequest request;
    request.budget = resident.peak_active / 10 * 6;
    request.allowed.recompute = false;
    const auto outcome = make_plan(index, request);
    ASSERT_TRUE(outcome.ok()) << outcome.error().text();
    const auto lowered = simulator::lower(index, outcome->plan);
    ASSERT_TRUE(lowered.ok()) << lowered.error().text();
    const auto ahead = simulator::replay_allocator(index, lowered->schedule).buffers_ahead;
    const simulator::AllocatorOutlook outlook(index, lowered->schedule, 300'000);
    for (simulator::AddressOrder order = 0; order < 5; ++order) {
      SCOPED_TRACE(::testing::Message() << name << " order " << order);
      testing::RealProcess process(index, lowered->schedule, order);
      testing::RealProcess plain(index, lowered->schedule, order);
      plain.reserve(ahead);
      plain.step();
      const std::size_t taken_plain = plain.segments_taken().size();
      for (int i = 0; i < kSteps; ++i) plain.step();
      taking += plain.segments_taken().size() > taken_plain;
      expect_none_taken_behind_a_look(outlook, ahead, process);
      ++processes;
    }
  }
  EXPECT_EQ(processes, 10);
  EXPECT_GT(taking, 0);
  RecordProperty("taking_without", taking);
}

}  // namespace
}  // namespace stowage::planner
