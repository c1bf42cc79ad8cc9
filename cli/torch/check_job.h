// One `check`: runs the step, compares, and writes the baseline when that was asked for.
#pragma once

#include "cli/console.h"
#include "cli/memory_check.h"
#include "cli/torch/check_options.h"
#include "traces/result.h"

namespace stowage::cli {

// A plan that does not apply to the step any more and a step that runs out of memory are failed
// cases, no errors. Warnings go to `console`. Errors: bad_input (plan, trace, a baseline that
// cannot be read or is another step's), usage, and what running the step ends with.
[[nodiscard]] Result<CheckReport> check(const CheckOptions& options, Console& console);

}  // namespace stowage::cli
