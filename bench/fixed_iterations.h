// Lets bench/instructions.py count instructions: that of one iteration is the difference of two
// runs.
#pragma once

#include <benchmark/benchmark.h>

namespace stowage::bench {

// For Benchmark::Apply. STOWAGE_BENCH_ITERATIONS=N in the environment: exactly N iterations and the
// name ends in "/iterations:N"; without it, or where it is no positive number, as many as the clock
// wants.
void fixed_iterations(benchmark::internal::Benchmark* benchmark);

}  // namespace stowage::bench
