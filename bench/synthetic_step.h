// A made-up training step of any size for benchmarks: `layers` layers of 25 forward and 50 backward
// ops, each op with nested ops, an output and a temporary, and a saved tensor for every second one.
#pragma once

#include "traces/trace.h"

namespace stowage::bench {

[[nodiscard]] Trace synthetic_step(int layers);

}  // namespace stowage::bench
