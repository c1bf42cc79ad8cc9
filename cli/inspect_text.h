// InspectReport for people.
#pragma once

#include <string>

#include "cli/inspect_report.h"
#include "cli/paint.h"
#include "cli/terminal.h"

namespace stowage::cli {

// `top`: rows of each table; `by_name`: the title of the group column ("layer").
[[nodiscard]] std::string inspect_text(const Trace& trace, const InspectReport& report, int top,
                                       const std::string& by_name, const Paint& paint,
                                       const Terminal& screen);

}  // namespace stowage::cli
