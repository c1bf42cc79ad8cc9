// InspectReport for people.
#pragma once

#include <string>

#include "report/answers/text_style.h"
#include "report/inspect.h"

namespace stowage::report {

// `top`: rows of each table; `by_name`: the title of the group column ("layer").
[[nodiscard]] std::string inspect_text(const Trace& trace, const InspectReport& report, int top,
                                       const std::string& by_name, const TextStyle& style);

}  // namespace stowage::report
