// InspectReport as "stowage-inspect/1".
#pragma once

#include <string>

#include "report/inspect.h"

namespace stowage::cli {

// One object and a newline; at most `top` storages.
[[nodiscard]] std::string inspect_json(const Trace& trace, const report::InspectReport& report,
                                       int top, const std::string& by_name);

}  // namespace stowage::cli
