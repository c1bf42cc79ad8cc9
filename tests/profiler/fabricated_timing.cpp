#include "tests/profiler/fabricated_timing.h"

namespace stowage::testing {

FabricatedTiming::FabricatedTiming(const profiler::RawPass& structure) {
  timing.pass = structure;
  timing.pass.light = true;
  timing.pass.live_at_begin.clear();
  timing.pass.threads = {kThread};
  for (profiler::RawSaved& saved : timing.pass.saved) saved.view = {};
  for (profiler::RawOp& op : timing.pass.ops) op.uses.clear();
  for (std::size_t i = 0; i < structure.events.size(); ++i) {
    timing.pass.events[i].time_ns = at(static_cast<std::int32_t>(i));
  }
  timing.pass.step_ns = timing.step_ns =
      static_cast<Nanoseconds>(structure.events.size() - 1) * kGap;
  timing.activities.names = {"k"};
  timing.activities.library = "fabricated";
}

std::int64_t FabricatedTiming::kernel(std::int64_t launch, std::int64_t start, Nanoseconds duration,
                                      std::int64_t id) {
  profiler::RawActivities& a = timing.activities;
  const auto correlation = static_cast<std::int64_t>(a.activities.size()) + 1;
  a.activities.push_back({GpuKind::kernel, 0, start, start + duration, correlation, 7, 0,
                          profiler::MemoryKind::other, profiler::MemoryKind::other});
  a.launches.push_back({launch, launch + 2000, correlation, kThread});
  if (id != -1) a.externals.push_back({correlation, id});
  return correlation;
}

std::int64_t FabricatedTiming::memset(std::int64_t launch, std::int64_t start,
                                      Nanoseconds duration) {
  const std::int64_t correlation = kernel(launch, start, duration);
  timing.activities.activities.back().kind = GpuKind::memset;
  return correlation;
}

void FabricatedTiming::sync(std::int64_t start, std::int64_t end) {
  timing.activities.syncs.push_back({start, end});
}

}  // namespace stowage::testing
