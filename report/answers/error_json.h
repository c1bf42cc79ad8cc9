// {"error":{"code","message","where","hint"}}: what --json prints when a verb fails.
#pragma once

#include <string>

#include "traces/result.h"

namespace stowage::report {

// "usage", "bad_input", ... : `code` in the JSON.
[[nodiscard]] const char* name_of(ErrorCode code);

// Error::text() as one line that moves no cursor and is no longer than a few lines of a terminal,
// whatever a file, a name or an argument put into it.
[[nodiscard]] std::string error_line(const Error& error);

// One object and a newline. `where` is "FILE: /pointer", or empty.
[[nodiscard]] std::string error_json(const Error& error);

}  // namespace stowage::report
