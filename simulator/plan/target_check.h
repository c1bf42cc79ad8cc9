// Whether a plan was made for the trace at hand.
#pragma once

#include <string>

#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Refuses (bad_input) a plan whose fingerprint is another one, naming what differs: the model, the
// batch, the sequence length, the dtype, autocast, the optimizer, the gradient scaler, or only the
// saved tensors themselves. A plan without a fingerprint (written by hand) passes when nothing else
// that it says contradicts the trace; its model may leave out options.
[[nodiscard]] Status check_target(const Plan& plan, const std::string& plan_file,
                                  const Trace& trace);

}  // namespace stowage::simulator
