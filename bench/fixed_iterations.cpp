#include "bench/fixed_iterations.h"

#include <cstdlib>

namespace stowage::bench {

void fixed_iterations(benchmark::internal::Benchmark* benchmark) {
  const char* wanted = std::getenv("STOWAGE_BENCH_ITERATIONS");
  const long count = wanted == nullptr ? 0 : std::strtol(wanted, nullptr, 10);
  if (count > 0) benchmark->Iterations(count);
}

}  // namespace stowage::bench
