// Values of enumerations by the names that name_of() gives them, as people write them.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage {

// Usage error "--by: unknown grouping 'lyer' (did you mean layer?)"; where none is near, all names.
// `option` is where it was written.
[[nodiscard]] Error unknown_name(const std::string& option, const std::string& what,
                                 const std::string& given, const std::vector<std::string>& names);

// The value of this name_of(). Errors: unknown_name().
template <class Enum>
[[nodiscard]] Result<Enum> value_of_name(const std::string& option, const std::string& what,
                                         const std::string& given,
                                         std::initializer_list<Enum> values) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    names.emplace_back(name_of(value));
    if (names.back() == given) return value;
  }
  return unknown_name(option, what, given, names);
}

}  // namespace stowage
