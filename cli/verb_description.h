// What a verb takes, as a value: help, the manual page and the shells' completions are made from
// it.
#pragma once

#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage::cli {

// What may stand for a value, beside what the help says.
struct OfferedValues {
  std::vector<std::string> words = {};    // "auto", "never"; one that ends in '=' or ':' goes on
  bool file = false;                      // a file of one of these
  std::vector<std::string> endings = {};  // ".json.gz"; none: any file
  bool operator==(const OfferedValues&) const = default;
};

struct OptionDescription {
  std::string short_name = {};  // "-o"; empty: none
  std::string long_name = {};   // "--output"; of an argument without a name its word ("T")
  std::string value = {};       // the word that stands for the value; empty: a flag
  std::string help = {};
  bool repeats = false;
  OfferedValues offered = {};
  bool operator==(const OptionDescription&) const = default;
};

struct VerbDescription {
  std::string verb = {};
  std::string usage = {};  // "stowage plan T [options]"
  std::string summary = {};
  std::vector<OptionDescription> arguments = {};  // in order
  std::vector<OptionDescription> options = {};
  std::vector<std::string> details = {};
  std::vector<std::string> examples = {};
  bool operator==(const VerbDescription&) const = default;
};

// What `stowage VERB --describe` prints. The one is hidden from help: stowage asks stowage-torch.
inline constexpr const char* kDescribe = "--describe";

}  // namespace stowage::cli
