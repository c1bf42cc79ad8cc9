// The events of a step in words, one a line: what tests derive by hand.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.h"

namespace stowage::testing {

// "alloc 100", "pack a#0", "unpack a#0 of pack 3", "op_begin mul", "layer_forward_begin a", ...
[[nodiscard]] std::vector<std::string> texts_of(const Trace& trace);

}  // namespace stowage::testing
