// The answer of `stowage check` in words and as a JUnit suite.
#pragma once

#include <string>

#include "cli/junit.h"
#include "cli/memory_check.h"
#include "report/answers/paint.h"

namespace stowage::cli {

// Storages that grew and further details of a case, one a line, at most 40.
[[nodiscard]] std::vector<std::string> detail_lines(const CheckCase& each);

[[nodiscard]] std::string check_text(const CheckReport& report, const report::Paint& paint);

// One test case a quantity; a failure's text holds its details.
[[nodiscard]] JunitSuite check_suite(const CheckReport& report, const std::string& timestamp,
                                     Nanoseconds duration);

}  // namespace stowage::cli
