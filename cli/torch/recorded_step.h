// A step recorded now, in a process of its own.
#pragma once

#include "cli/torch/run_request.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// What `stowage profile` records of it. Errors: its own.
[[nodiscard]] Result<Trace> record_in_child(const RunRequest& request);

}  // namespace stowage::cli
