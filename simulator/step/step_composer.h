// The tables of a step from pieces of recorded passes. Invents nothing: each row is a row of a
// pass, with its ids, times and lifetimes as they are in the step.
#pragma once

#include "simulator/step/step_layout.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// The layout must be laid out. How each table comes about: docs/simulator.md, "How a recording
// becomes a step". Errors (bad_input): a piece needs a storage, an unpack a saved tensor, that is
// not in the step; a storage is made or freed twice, or what the recorded pass freed is not freed.
// Cost: O(rows of the step + tables of the sources).
[[nodiscard]] Result<Trace> compose(const StepLayout& layout);

}  // namespace stowage::simulator
