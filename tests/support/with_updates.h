// A recorded step with an optimizer behind it: only one sample in traces/samples has one.
#pragma once

#include "traces/trace.h"

namespace stowage::testing {

[[nodiscard]] bool has_updates(const Trace& recording);

// The recording with an update of each parameter at its end, one after the other as the optimizer's
// phase has them: an op that writes the parameter, `time` long, on a GPU with a kernel as long. Its
// end stays behind them. Precondition: it has none, nothing in the recording stands behind its last
// but one event, and nothing dies there.
Trace with_updates(Trace recording, Nanoseconds time);

}  // namespace stowage::testing
