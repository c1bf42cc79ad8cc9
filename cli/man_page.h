// The manual page of the command, made from what its verbs say that they take.
#pragma once

#include <string>
#include <vector>

#include "cli/verb_description.h"

namespace stowage::cli {

// stowage.1 as man(7) and mdoc's readers take it: groff -man and mandoc find nothing wrong with it.
// A verb without options has its summary alone.
[[nodiscard]] std::string man_page(const std::vector<VerbDescription>& verbs);

}  // namespace stowage::cli
