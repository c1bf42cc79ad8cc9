// InspectReport for people.
#pragma once

#include <string>

#include "cli/paint.h"
#include "cli/terminal.h"
#include "report/inspect.h"

namespace stowage::cli {

// `top`: rows of each table; `by_name`: the title of the group column ("layer").
[[nodiscard]] std::string inspect_text(const Trace& trace, const report::InspectReport& report,
                                       int top, const std::string& by_name, const Paint& paint,
                                       const Terminal& screen);

}  // namespace stowage::cli
