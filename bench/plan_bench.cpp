// Planning: time of make_plan, of one evaluation (lower and replay), of the bounds, on a made-up
// transformer. Layers save what GPT-2's do: 12 tensors a layer, some of them shared or parts.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench/fixed_iterations.h"
#include "bench/made_up_model.h"
#include "planner/bounds.h"
#include "planner/planner.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "traces/trace_file.h"

namespace stowage {
namespace {

using planner::Footprints;

void BM_MakePlan(benchmark::State& state) {
  const Trace trace =
      bench::made_up_model(static_cast<int>(state.range(0)), state.range(2) * 1'000'000'000);
  const simulator::StepIndex index(trace);
  const Bytes peak = simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
  planner::PlanRequest request;
  request.budget = peak * state.range(1) / 100;
  std::int64_t evaluations = 0;
  std::int64_t gap_ppm = 0;
  std::size_t rules = 0;
  std::int64_t grid_points = 0;
  double overhead = 0;
  for (auto _ : state) {
    auto outcome = planner::make_plan(index, request);
    if (!outcome || !outcome->feasible()) {
      state.SkipWithError("no plan");
      break;
    }
    evaluations = outcome->search.evaluations;
    gap_ppm = outcome->gap_ppm;
    rules = outcome->plan.saved.size();
    grid_points = outcome->search.grid_points;
    overhead = static_cast<double>(outcome->predicted.step_ns) /
                   static_cast<double>(outcome->resident.step_ns) -
               1;
  }
  state.counters["events"] = static_cast<double>(index.event_count());
  state.counters["saved"] = static_cast<double>(trace.saved.size());
  state.counters["evaluations"] = static_cast<double>(evaluations);
  state.counters["budgets"] = static_cast<double>(grid_points);
  state.counters["gap_percent"] = static_cast<double>(gap_ppm) / 1e4;
  state.counters["overhead_percent"] = overhead * 100;
  state.counters["rules"] = static_cast<double>(rules);
}
BENCHMARK(BM_MakePlan)
    ->ArgNames({"layers", "percent", "GB/s"})
    ->ArgsProduct({{12, 32}, {80, 60, 45}, {2, 4, 10}})
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMillisecond);

// Recorded steps of nine layers with 12 GB of parameters that can stream: budgets at which copies
// hide (fp32), and at which they cannot (tf32, bf16). `evaluations/s` tells
// the machine's speed from the search's effort.
void BM_PlanRecorded(benchmark::State& state, const std::string& name, Bytes budget) {
  const auto loaded =
      load_trace(std::string(STOWAGE_SOURCE_DIR) + "/traces/samples/" + name + ".trace.json.gz");
  if (!loaded) {
    state.SkipWithError("no trace");
    return;
  }
  const simulator::StepIndex index(loaded->trace);
  planner::PlanRequest request;
  request.budget = budget;
  std::int64_t evaluations = 0;
  for (auto _ : state) {
    const auto outcome = planner::make_plan(index, request);
    if (!outcome || !outcome->feasible()) {
      state.SkipWithError("no plan");
      break;
    }
    evaluations += outcome->search.evaluations;
    state.counters["budgets"] = static_cast<double>(outcome->search.grid_points);
    state.counters["gap_percent"] = static_cast<double>(outcome->gap_ppm) / 1e4;
    state.counters["step_ms"] = static_cast<double>(outcome->predicted.step_ns) / 1e6;
  }
  state.counters["evaluations"] =
      static_cast<double>(evaluations) / static_cast<double>(state.iterations());
  state.counters["evaluations/s"] =
      benchmark::Counter(static_cast<double>(evaluations), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_PlanRecorded, fp32_math_35GB, "llama3-8b-l9-fp32-math-h200", 34'900'000'000)
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PlanRecorded, fp32_math_26GB, "llama3-8b-l9-fp32-math-h200", 26'000'000'000)
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PlanRecorded, fp32_efficient_34GB, "llama3-8b-l9-fp32-efficient-h200",
                  33'500'000'000)
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PlanRecorded, tf32_math_35GB, "llama3-8b-l9-tf32-math-h200", 35'300'000'000)
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PlanRecorded, bf16_17GB, "llama3-8b-l9-bf16-h200", 17'100'000'000)
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMillisecond);

void BM_Evaluate(benchmark::State& state) {
  const Trace trace = bench::made_up_model(static_cast<int>(state.range(0)));
  const simulator::StepIndex index(trace);
  const Footprints footprints(index);
  std::vector<planner::Choice> choices(footprints.movable().size(), planner::Choice::keep);
  for (std::size_t m = 0; m < choices.size(); m += 2) {
    if (footprints.movable()[m].allows(planner::Choice::shared))
      choices[m] = planner::Choice::shared;
  }
  simulator::Decisions decisions = footprints.decisions(choices, {}, {});
  decisions.budget = simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
  for (auto _ : state) {
    const auto lowering = simulator::lower(index, decisions);
    benchmark::DoNotOptimize(simulator::replay(index, lowering->schedule).step_ns);
  }
}
BENCHMARK(BM_Evaluate)
    ->Arg(12)
    ->Arg(32)
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMicrosecond);

void BM_Bounds(benchmark::State& state) {
  const Trace trace = bench::made_up_model(static_cast<int>(state.range(0)));
  const simulator::StepIndex index(trace);
  const Bytes peak = simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
  for (auto _ : state) {
    const Footprints footprints(index);
    benchmark::DoNotOptimize(planner::memory_floor(footprints).bytes);
    benchmark::DoNotOptimize(planner::shortest_step(footprints, peak * 6 / 10));
  }
}
BENCHMARK(BM_Bounds)
    ->Arg(12)
    ->Arg(32)
    ->Apply(bench::fixed_iterations)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stowage
