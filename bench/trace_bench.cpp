// Loading and writing a trace of 50,000 ops.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "bench/library_json.h"
#include "tests/traces/synthetic_trace.h"
#include "traces/file_io.h"
#include "traces/sha256.h"
#include "traces/trace_json.h"
#include "traces/validate.h"

namespace stowage {
namespace {

const Trace& large_trace() {
  static const Trace trace = testing::SyntheticTrace(25'000, 10).trace();
  return trace;
}

const std::string& large_json() {
  static const std::string text = trace_to_json(large_trace());
  return text;
}

void count(benchmark::State& state) {
  const auto runs = static_cast<std::int64_t>(state.iterations());
  state.SetBytesProcessed(runs * static_cast<std::int64_t>(large_json().size()));
  state.SetItemsProcessed(runs * static_cast<std::int64_t>(large_trace().ops.size()));
}

// Parse and validate; items are ops.
void trace_from_json_50k(benchmark::State& state) {
  const std::string& text = large_json();
  for (auto _ : state) {
    auto trace = trace_from_json(text, "bench");
    if (!trace) state.SkipWithError(trace.error().text().c_str());
    benchmark::DoNotOptimize(trace);
  }
  count(state);
}
BENCHMARK(trace_from_json_50k)->Unit(benchmark::kMillisecond);

// What a scanner of our own buys (docs/decisions/0004): the library's time over ours, in one run.
// The library only parses, by its SAX interface into nothing; ours fills the tables and validates
// them.
void trace_library_over_ours_50k(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  const std::string& text = large_json();
  Clock::duration ours{0};
  Clock::duration library{0};
  for (auto _ : state) {
    const auto begin = Clock::now();
    benchmark::DoNotOptimize(trace_from_json(text, "bench").ok());
    const auto middle = Clock::now();
    benchmark::DoNotOptimize(parse_with_library(text));
    ours += middle - begin;
    library += Clock::now() - middle;
  }
  state.counters["ratio"] =
      static_cast<double>(library.count()) / static_cast<double>(ours.count());
}
BENCHMARK(trace_library_over_ours_50k)->Unit(benchmark::kMillisecond);

void trace_validate_50k(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(validate(large_trace(), "bench").ok());
  count(state);
}
BENCHMARK(trace_validate_50k)->Unit(benchmark::kMillisecond);

void trace_sha256_50k(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(sha256_of(large_json()));
  count(state);
}
BENCHMARK(trace_sha256_50k)->Unit(benchmark::kMillisecond);

void trace_gunzip_50k(benchmark::State& state) {
  const std::string packed = gzip(large_json());
  state.counters["packed_bytes"] = static_cast<double>(packed.size());
  for (auto _ : state) benchmark::DoNotOptimize(gunzip(packed, "bench").ok());
  count(state);
}
BENCHMARK(trace_gunzip_50k)->Unit(benchmark::kMillisecond);

void trace_to_json_50k(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(trace_to_json(large_trace()));
  count(state);
}
BENCHMARK(trace_to_json_50k)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stowage
