// The verbs that `stowage --help` lists.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/verb_description.h"

namespace stowage::cli {

struct ListedVerb {
  std::string name;
  std::string arguments;
  std::string summary;
  // (args after the verb, stdout, stderr) -> exit code; null: stowage-torch has it.
  int (*function)(const Args&, std::ostream&, std::ostream&) = nullptr;
};

// In the order in which they are used.
[[nodiscard]] const std::vector<ListedVerb>& listed_verbs();

// What each takes: asked of itself, or of stowage-torch, which is started for it. A verb of
// stowage-torch has its name and summary alone where that is not there.
[[nodiscard]] std::vector<VerbDescription> describe_verbs();

}  // namespace stowage::cli
