#include "executor/division.h"

#include <algorithm>

namespace stowage::executor {

std::int32_t parts_among(const std::vector<simulator::Structure::Parts>& all,
                         std::string_view segment) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& each) { return each.segment == segment; });
  return found == all.end() ? 1 : found->parts;
}

std::optional<std::int32_t> Division::parts(std::string_view segment) {
  asked_.emplace(segment);
  return parts_among(parts_, segment);
}

std::vector<std::string> Division::unasked() const {
  std::vector<std::string> names;
  for (const simulator::Structure::Parts& each : parts_) {
    if (!asked_.contains(each.segment)) names.push_back(each.segment);
  }
  return names;
}

}  // namespace stowage::executor
