// A Diff as "stowage-diff/1".
#pragma once

#include <string>

#include "report/diff.h"

namespace stowage::report {

[[nodiscard]] std::string diff_json(const Diff& diff, const std::string& before,
                                    const std::string& after);

}  // namespace stowage::report
