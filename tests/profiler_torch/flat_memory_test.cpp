// A planned model that trains for long takes no more of the process's memory: what a step needs is
// there after the first ones.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/micro_trace.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STOWAGE_SANITIZED 1
#else
#define STOWAGE_SANITIZED 0
#endif

namespace stowage {
namespace {

// What of the process is in memory: the second figure of statm, in pages.
Bytes resident_bytes() {
  Bytes size = 0;
  Bytes resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Everything moves: saved tensors of the step leave, parameters stream.
simulator::Schedule move_everything(const testing::TwinSessions& twins) {
  simulator::Decisions decisions = testing::offload_all(twins.trace());
  decisions.parameters.stream = simulator::ParameterPlan::Stream::always;
  decisions.parameters.prefetch = 1;
  const Trace& trace = twins.trace();
  decisions.parameters.shard_of.assign(trace.storages.size(), -1);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::parameter) continue;
    decisions.parameters.shard_of[s] = trace.storages.layer[s].value;
  }
  const auto lowering = simulator::lower(twins.index(), decisions);
  EXPECT_TRUE(lowering.ok());
  return lowering->schedule;
}

TEST(FlatMemory, OfAThousandStepsOfAPlannedModel) {
  if (STOWAGE_SANITIZED) GTEST_SKIP() << "a sanitizer keeps what was freed";
  constexpr std::int64_t kSettled = 50;
  constexpr std::int64_t kSteps = 1000;
  constexpr Bytes kMostGrowth = 1'000'000;
  testing::TwinSessions twins("mlp:layers=3,width=32", 4, "adamw");
  const simulator::Schedule schedule = move_everything(twins);
  ASSERT_FALSE(schedule.tenants.empty());
  ASSERT_TRUE(schedule.tenants.back().has_own_home);
  const auto plan = twins.plan(schedule);
  Bytes settled = 0;
  for (std::int64_t k = 0; k < kSteps; ++k) {
    const auto result = twins.run_planned(*plan, k);
    ASSERT_EQ(result.error, "") << "step " << k;
    ASSERT_TRUE(result.report.on_plan) << result.report.first_difference;
    if (k + 1 != kSettled) continue;
    malloc_trim(0);
    settled = resident_bytes();
  }
  malloc_trim(0);
  const Bytes grown = resident_bytes() - settled;
  RecordProperty("grown_bytes", std::to_string(grown));
  EXPECT_LT(grown, kMostGrowth) << "between step " << kSettled << " and step " << kSteps;
}

}  // namespace
}  // namespace stowage
