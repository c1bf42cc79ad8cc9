// A made-up training step in the shape of GPT-2: what a layer saves, shares and frees is what the
// real one does; sizes and times are round numbers.
#pragma once

#include "traces/trace.h"

namespace stowage::bench {

// `layers` blocks of 14 saved tensors and some 45 ops each, then a head and its loss. At 7 GB/s a
// layer's saved bytes take as long to copy as its forward takes to compute.
[[nodiscard]] Trace made_up_model(int layers, std::int64_t link_bytes_per_second = 4'000'000'000);

}  // namespace stowage::bench
