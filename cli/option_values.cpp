#include "cli/option_values.h"

#include "cli/console.h"
#include "traces/nearest.h"

namespace stowage::cli {

Error unknown_name(const std::string& option, const std::string& what, const std::string& given,
                   const std::vector<std::string>& names) {
  const std::string near = nearest(given, names);
  std::string hint = near.empty() ? "" : "did you mean " + near + "?";
  for (std::size_t i = 0; near.empty() && i < names.size(); ++i) {
    hint += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return usage_error(option + ": unknown " + what + " '" + given + "'", hint);
}

Result<simulator::PlacementMode> placement_named(const std::string& name) {
  using simulator::PlacementMode;
  return value_of_name("--placement", "memory", name,
                       {PlacementMode::caching, PlacementMode::planned});
}

Result<int> table_rows(const std::optional<std::int64_t>& top, int otherwise) {
  const std::int64_t rows = top.value_or(otherwise);
  if (rows >= 1 && rows <= 1'000'000) return static_cast<int>(rows);
  return usage_error("--top: " + std::to_string(rows) + " is not a number of rows", "1 to 1000000");
}

}  // namespace stowage::cli
