// A trace whose names go to a terminal.
#pragma once

#include <string>

#include "traces/trace_file.h"

namespace stowage::cli {

// load_trace, with every control character in names replaced by '?': a foreign file must not move
// the cursor. As a pattern in a plan, such a name still matches. Also refused (bad_input): names of
// layers that differ in such characters alone.
[[nodiscard]] Result<LoadedTrace> load_shown_trace(const std::string& path);

}  // namespace stowage::cli
