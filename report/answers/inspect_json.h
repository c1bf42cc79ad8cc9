// InspectReport as "stowage-inspect/1".
#pragma once

#include <string>

#include "report/inspect.h"

namespace stowage::report {

// One object and a newline; at most `top` storages.
[[nodiscard]] std::string inspect_json(const Trace& trace, const InspectReport& report, int top,
                                       const std::string& by_name);

}  // namespace stowage::report
