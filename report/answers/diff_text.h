// A Diff for people: tables, one a section.
#pragma once

#include <string>

#include "report/answers/paint.h"
#include "report/diff.h"

namespace stowage::report {

// `top`: rows of each section, the largest differences first where there are more.
[[nodiscard]] std::string diff_text(const Diff& diff, const std::string& before,
                                    const std::string& after, int top, const Paint& paint);

}  // namespace stowage::report
