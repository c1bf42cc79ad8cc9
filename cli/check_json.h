// The answer of `stowage check` as "stowage-check/1".
#pragma once

#include <string>

#include "cli/memory_check.h"

namespace stowage::cli {

// One object and a newline; docs/cli.md describes the keys.
[[nodiscard]] std::string check_json(const CheckReport& report);

}  // namespace stowage::cli
