// Completions of the command for bash, zsh and fish, made from what its verbs say that they take.
#pragma once

#include <string>
#include <vector>

#include "cli/verb_description.h"

namespace stowage::cli {

// A whole script. A verb whose description has no options (stowage-torch was not there to tell) is
// completed by name, and files behind it.
[[nodiscard]] std::string bash_completions(const std::vector<VerbDescription>& verbs);
[[nodiscard]] std::string zsh_completions(const std::vector<VerbDescription>& verbs);
[[nodiscard]] std::string fish_completions(const std::vector<VerbDescription>& verbs);

}  // namespace stowage::cli
