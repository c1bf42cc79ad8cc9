// Replay and lowering of a made-up step. Item = one op of the step, nested ones included.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "bench/fixed_iterations.h"
#include "bench/synthetic_step.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/placement.h"
#include "simulator/replay/replay.h"

namespace stowage::bench {
namespace {

using namespace simulator;

struct Workload {
  Trace trace;
  StepIndex index;
  Decisions decisions;
  explicit Workload(std::int64_t layers)
      : trace(synthetic_step(static_cast<int>(layers))), index(trace) {
    decisions.saved.resize(trace.saved.size());
    for (auto& row : decisions.saved) row.decision = Decision::offload;
  }
  void count(benchmark::State& state) const {
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.ops.size()));
    state.counters["ops"] = static_cast<double>(trace.ops.size());
    state.counters["events"] = static_cast<double>(trace.events.size());
    state.counters["saved"] = static_cast<double>(trace.saved.size());
  }
};

void Replay(benchmark::State& state) {
  const Workload w(state.range(0));
  const Schedule schedule = lower(w.index, w.decisions)->schedule;
  for (auto _ : state) benchmark::DoNotOptimize(replay(w.index, schedule).step_ns);
  w.count(state);
}
BENCHMARK(Replay)
    ->Arg(9)
    ->Arg(67)
    ->Arg(334)
    ->Apply(fixed_iterations)
    ->Unit(benchmark::kMicrosecond);

void ReplayWithDetail(benchmark::State& state) {
  const Workload w(state.range(0));
  const Schedule schedule = lower(w.index, w.decisions)->schedule;
  ReplayDetail detail;
  for (auto _ : state) benchmark::DoNotOptimize(replay(w.index, schedule, &detail).step_ns);
  w.count(state);
}
BENCHMARK(ReplayWithDetail)->Arg(67)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

void ReplayResident(benchmark::State& state) {
  const Workload w(state.range(0));
  const Schedule schedule = resident_schedule(w.index);
  for (auto _ : state) benchmark::DoNotOptimize(replay(w.index, schedule).step_ns);
  w.count(state);
}
BENCHMARK(ReplayResident)->Arg(67)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

// Active and reserved bytes alone: all periods until the allocator's state repeats.
void ReplayAllocator(benchmark::State& state) {
  const Workload w(state.range(0));
  const Schedule schedule = lower(w.index, w.decisions)->schedule;
  std::int32_t periods = 0;
  for (auto _ : state) {
    const AllocatorReplay result = replay_allocator(w.index, schedule);
    benchmark::DoNotOptimize(result.peak_reserved);
    periods = result.periods;
  }
  w.count(state);
  state.counters["periods"] = static_cast<double>(periods);
}
BENCHMARK(ReplayAllocator)
    ->Arg(67)
    ->Arg(334)
    ->Apply(fixed_iterations)
    ->Unit(benchmark::kMicrosecond);

// Ranges of random sizes, a quarter of which are there for long.
void PlaceRandom(benchmark::State& state) {
  std::mt19937_64 random(1);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  const auto count = static_cast<std::int32_t>(state.range(0));
  LiveRanges live{2 * count, {}, {}};
  for (std::int32_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int32_t>(below(live.instants));
    const std::int64_t longest = below(4) == 0 ? live.instants / 2 : 40;
    const auto end = static_cast<std::int32_t>(begin + 1 + below(longest));
    live.ranges.push_back(
        {1 + below(below(2) == 0 ? 4 << 20 : 32 << 20), begin, std::min(end, live.instants)});
  }
  DevicePlacement placement;
  for (auto _ : state) placement = place(live);
  state.counters["above"] =
      static_cast<double>(placement.bytes()) / static_cast<double>(placement.lower_bound) - 1;
}
BENCHMARK(PlaceRandom)->Arg(20'000)->Apply(fixed_iterations)->Unit(benchmark::kMillisecond);

// Placing all that a step allocates.
void Place(benchmark::State& state) {
  const Workload w(state.range(0));
  const Schedule schedule = lower(w.index, w.decisions)->schedule;
  const LiveRanges live = live_ranges(allocation_sequence(w.index, schedule), w.trace);
  DevicePlacement placement;
  for (auto _ : state) placement = place(live);
  w.count(state);
  state.counters["ranges"] = static_cast<double>(live.ranges.size());
  state.counters["above"] =
      static_cast<double>(placement.bytes()) / static_cast<double>(placement.lower_bound) - 1;
}
BENCHMARK(Place)->Arg(67)->Arg(440)->Apply(fixed_iterations)->Unit(benchmark::kMillisecond);

void Lower(benchmark::State& state) {
  Workload w(state.range(0));
  if (state.range(1) != 0) {
    w.decisions.budget = replay(w.index, resident_schedule(w.index)).peak_requested / 2;
  }
  for (auto _ : state) benchmark::DoNotOptimize(lower(w.index, w.decisions)->schedule.host_bytes);
  w.count(state);
}
BENCHMARK(Lower)
    ->ArgNames({"layers", "budget"})
    ->Args({67, 0})
    ->Args({67, 1})
    ->Apply(fixed_iterations)
    ->Unit(benchmark::kMicrosecond);

void Index(benchmark::State& state) {
  const Workload w(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(StepIndex(w.trace).event_count());
  w.count(state);
}
BENCHMARK(Index)->Arg(67)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

void FindHazards(benchmark::State& state) {
  const Workload w(state.range(0));
  const Schedule schedule = lower(w.index, w.decisions)->schedule;
  for (auto _ : state) benchmark::DoNotOptimize(find_hazards(w.index, schedule).size());
  w.count(state);
}
BENCHMARK(FindHazards)->Arg(67)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stowage::bench
