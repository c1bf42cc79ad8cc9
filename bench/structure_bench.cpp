// Evaluations of candidates: as the search makes them now (lower and estimate), and with one
// layer's recompute flipped ahead of each. items = evaluations.
#include <benchmark/benchmark.h>

#include <stdexcept>

#include "bench/fixed_iterations.h"
#include "bench/layered_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/step/structured_step.h"
#include "simulator/step/unroll.h"

namespace stowage::bench {
namespace {

using namespace simulator;

// Every second layer is recomputed to begin with.
struct Workload {
  LayeredStep layered;
  std::unique_ptr<StructuredStep> step;
  Structure structure;

  explicit Workload(std::int64_t layers) : layered(layered_step(static_cast<int>(layers))) {
    auto made = StructuredStep::make(layered.recording, layered.recompute);
    if (!made) throw std::runtime_error(made.error().text());
    step = std::move(made).value();
    for (std::size_t l = 0; l < layered.recompute.size(); l += 2) {
      flip(l);
      structure.recompute.push_back(layered.recompute[l].segment);
    }
  }

  void flip(std::size_t layer) const {
    if (const Status done = step->set(layer, !step->is_on(layer)); !done) {
      throw std::runtime_error(done.error().text());
    }
  }

  // All layers in turn, far from each other.
  [[nodiscard]] std::size_t layer(std::int64_t iteration) const {
    return static_cast<std::size_t>(iteration * 29) % layered.recompute.size();
  }

  [[nodiscard]] std::int64_t evaluate() const {
    const StepIndex& index = step->index();
    Decisions decisions;
    decisions.saved.resize(index.trace().saved.size());
    for (auto& row : decisions.saved) row.decision = Decision::offload;
    return estimate(index, lower(index, decisions)->schedule).step_ns;
  }

  void count(benchmark::State& state) const {
    state.SetItemsProcessed(state.iterations());
    state.counters["events"] = static_cast<double>(step->step().trace().events.size());
    state.counters["saved"] = static_cast<double>(step->step().trace().saved.size());
  }
};

void EvaluatePlain(benchmark::State& state) {
  const Workload w(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(w.evaluate());
  w.count(state);
}
BENCHMARK(EvaluatePlain)->Arg(67)->Arg(334)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

void EvaluateWithFlip(benchmark::State& state) {
  const Workload w(state.range(0));
  std::int64_t iteration = 0;
  for (auto _ : state) {
    w.flip(w.layer(iteration++));
    benchmark::DoNotOptimize(w.evaluate());
  }
  w.count(state);
}
BENCHMARK(EvaluateWithFlip)
    ->Arg(67)
    ->Arg(334)
    ->Apply(fixed_iterations)
    ->Unit(benchmark::kMicrosecond);

void Flip(benchmark::State& state) {
  const Workload w(state.range(0));
  std::int64_t iteration = 0;
  for (auto _ : state) w.flip(w.layer(iteration++));
  w.count(state);
}
BENCHMARK(Flip)->Arg(67)->Arg(334)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

// What a flip would cost without a StructuredStep.
void UnrollAndIndex(benchmark::State& state) {
  const Workload w(state.range(0));
  for (auto _ : state) {
    const auto step = unroll(w.layered.recording, w.structure, w.layered.recompute);
    if (!step) throw std::runtime_error(step.error().text());
    benchmark::DoNotOptimize(StepIndex(*step).event_count());
  }
  w.count(state);
}
BENCHMARK(UnrollAndIndex)
    ->Arg(67)
    ->Arg(334)
    ->Apply(fixed_iterations)
    ->Unit(benchmark::kMicrosecond);

void IndexOfStep(benchmark::State& state) {
  const Workload w(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(StepIndex(w.step->step()).event_count());
  w.count(state);
}
BENCHMARK(IndexOfStep)->Arg(67)->Arg(334)->Apply(fixed_iterations)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stowage::bench
