// `--micro-batches SEGMENT=N[,N..]`: in how many parts of the batch tails of a step run.
#pragma once

#include <string>
#include <vector>

#include "simulator/step/structure.h"
#include "traces/result.h"

namespace stowage::cli {

using Parts = std::vector<simulator::Structure::Parts>;

// One way to divide the step for each number: "head=2,4" is two. Errors (usage): no such form, a
// number below 2, the same twice.
[[nodiscard]] Result<std::vector<Parts>> parse_divisions(const std::vector<std::string>& options);

// The options that say so, as arguments: {"--micro-batches", "head=4", ..}.
[[nodiscard]] std::vector<std::string> parts_arguments(const Parts& parts);

}  // namespace stowage::cli
