// A Diff as "stowage-diff/1".
#pragma once

#include <string>

#include "report/diff.h"

namespace stowage::cli {

[[nodiscard]] std::string diff_json(const report::Diff& diff, const std::string& before,
                                    const std::string& after);

}  // namespace stowage::cli
