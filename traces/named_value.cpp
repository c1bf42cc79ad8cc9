#include "traces/named_value.h"

#include "traces/nearest.h"

namespace stowage {

Error unknown_name(const std::string& option, const std::string& what, const std::string& given,
                   const std::vector<std::string>& names) {
  const std::string near = nearest(given, names);
  std::string hint = near.empty() ? "" : "did you mean " + near + "?";
  for (std::size_t i = 0; near.empty() && i < names.size(); ++i) {
    hint += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return Error{ErrorCode::usage, option + ": unknown " + what + " '" + given + "'", "", "", hint};
}

}  // namespace stowage
