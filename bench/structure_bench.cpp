// Candidates of structures: an evaluation (lower and estimate) of a step in which every second
// layer runs again, and what making such a step and its index takes. items = evaluations.
#include <benchmark/benchmark.h>

#include <stdexcept>

#include "bench/fixed_iterations.h"
#include "bench/layered_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/step/unroll.h"

namespace stowage::bench {
namespace {

using namespace simulator;

struct Workload {
  LayeredStep layered;
  Structure structure;

  explicit Workload(std::int64_t layers) : layered(layered_step(static_cast<int>(layers))) {
    for (std::size_t l = 0; l < layered.recompute.size(); l += 2) {
      structure.recompute.push_back(layered.recompute[l].segment);
    }
  }

  [[nodiscard]] Step step() const {
    auto made = unroll(layered.recording, structure, layered.recompute);
    if (!made) throw std::runtime_error(made.error().text());
    return std::move(made).value();
  }
};

void count(benchmark::State& state, const Step& step) {
  state.SetItemsProcessed(state.iterations());
  state.counters["events"] = static_cast<double>(step.trace().events.size());
  state.counters["saved"] = static_cast<double>(step.trace().saved.size());
}

void Evaluate(benchmark::State& state) {
  const Workload w(state.range(0));
  const Step step = w.step();
  const StepIndex index(step);
  for (auto _ : state) {
    Decisions decisions;
    decisions.saved.resize(index.trace().saved.size());
    for (auto& row : decisions.saved) row.decision = Decision::offload;
    benchmark::DoNotOptimize(estimate(index, lower(index, decisions)->schedule).step_ns);
  }
  count(state, step);
}
BENCHMARK(Evaluate)->Arg(67)->Arg(334)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

void UnrollAndIndex(benchmark::State& state) {
  const Workload w(state.range(0));
  for (auto _ : state) {
    const Step step = w.step();
    benchmark::DoNotOptimize(StepIndex(step).event_count());
  }
  count(state, w.step());
}
BENCHMARK(UnrollAndIndex)
    ->Arg(67)
    ->Arg(334)
    ->Apply(fixed_iterations)
    ->Unit(benchmark::kMicrosecond);

void IndexOfStep(benchmark::State& state) {
  const Workload w(state.range(0));
  const Step step = w.step();
  for (auto _ : state) benchmark::DoNotOptimize(StepIndex(step).event_count());
  count(state, step);
}
BENCHMARK(IndexOfStep)->Arg(67)->Arg(334)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stowage::bench
