// What of a recording is known ahead of any step: fused attention's backward on the CPU takes
// scratch on several intra-op threads at once, in no order that could be recorded.
#pragma once

#include "cli/torch/run_request.h"
#include "traces/result.h"

namespace stowage::cli {

// Error (bad_input): the recorder would refuse this built-in model's step, with the way out. Of a
// script, a plugin or dropout it is known when the step runs.
[[nodiscard]] Status check_fused_attention(const RunRequest& run);

}  // namespace stowage::cli
