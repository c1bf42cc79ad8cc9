// A made-up recording of layers that can be recomputed, for benchmarks: 25 ops in forward and 50 in
// backward of each layer, each op with a nested one and a temporary; every second op's output is
// saved.
#pragma once

#include <vector>

#include "simulator/step/step_template.h"
#include "traces/trace.h"

namespace stowage::bench {

struct LayeredStep {
  Trace recording;
  std::vector<simulator::StepTemplate> recompute;  // a template a layer
};

[[nodiscard]] LayeredStep layered_step(int layers);

}  // namespace stowage::bench
