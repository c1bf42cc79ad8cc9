// {"error":{"code","message","where","hint"}}: what --json prints when a verb fails.
#pragma once

#include <string>

#include "traces/result.h"

namespace stowage::report {

// "usage", "bad_input", ... : `code` in the JSON.
[[nodiscard]] const char* name_of(ErrorCode code);

// One object and a newline. `where` is "FILE: /pointer", or empty.
[[nodiscard]] std::string error_json(const Error& error);

}  // namespace stowage::report
