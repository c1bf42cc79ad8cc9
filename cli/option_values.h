// Values of options that several verbs take alike.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::cli {

// "--by: unknown grouping 'lyer' (did you mean layer?)"; where none is near, all names.
[[nodiscard]] Error unknown_name(const std::string& option, const std::string& what,
                                 const std::string& given, const std::vector<std::string>& names);

// The value of this name_of(). Errors (usage): unknown_name().
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

// --placement: caching or planned. Errors (usage): unknown_name().
[[nodiscard]] Result<simulator::PlacementMode> placement_named(const std::string& name);

// --top: rows of each table. Errors (usage): not in 1 ... 1,000,000.
[[nodiscard]] Result<int> table_rows(const std::optional<std::int64_t>& top, int otherwise);

}  // namespace stowage::cli
