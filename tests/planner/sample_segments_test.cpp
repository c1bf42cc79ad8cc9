// On the recorded GPU traces no step behind the first one takes memory from the driver, under each
// policy and `auto`: what it would take is taken ahead.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "planner/planner.h"
#include "simulator/allocator_replay.h"
#include "simulator/lowering.h"
#include "traces/trace_file.h"

namespace stowage::planner {
namespace {

TEST(SampleSegments, NoneIsTakenBehindTheFirstStep) {
  int plans = 0;
  int ahead = 0;
  const std::filesystem::path samples(STOWAGE_SOURCE_DIR "/traces/samples");
  for (const auto& entry : std::filesystem::directory_iterator(samples)) {
    const std::string file = entry.path().string();
    if (file.find("-h200.trace.json.gz") == std::string::npos) continue;
    const auto loaded = load_trace(file);
    ASSERT_TRUE(loaded.ok()) << loaded.error().text();
    const simulator::TraceIndex index(loaded->trace);
    const auto resident = simulator::replay(index, simulator::resident_schedule(index));
    const auto check = [&](const std::string& policy, std::optional<Bytes> budget) {
      PlanRequest request;
      request.policy = policy;
      request.budget = budget;
      const auto outcome = make_plan(index, request);
      ASSERT_TRUE(outcome.ok()) << file << outcome.error().text();
      const auto lowered = simulator::lower(index, outcome->plan);
      ASSERT_TRUE(lowered.ok()) << lowered.error().text();
      setenv("SLAB", "1", 1);
      const auto allocator = simulator::replay_allocator(index, lowered->schedule);
      unsetenv("SLAB");
      EXPECT_TRUE(allocator.is_complete) << file << " " << policy;
      EXPECT_TRUE(allocator.later_segments.empty()) << file << " " << policy;
      ahead += !allocator.segments_ahead.empty();
      ++plans;
    };
    for (const PolicyInfo& policy : policies()) {
      if (policy.name != "auto") check(policy.name, std::nullopt);
    }
    check("auto", resident.peak_active / 4 * 3);
    check("auto", resident.peak_active * 11 / 20);
  }
  EXPECT_GE(plans, 7 * 7);
  EXPECT_GE(ahead, 4);  // the resident GPT-2 and one auto plan of it, fp32 and bf16
}

}  // namespace
}  // namespace stowage::planner
