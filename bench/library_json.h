// nlohmann_json at its fastest, to compare our trace reader with.
#pragma once

#include <string>

namespace stowage {

// Parses through the SAX interface and keeps nothing. True when the text is JSON.
[[nodiscard]] bool parse_with_library(const std::string& text);

}  // namespace stowage
