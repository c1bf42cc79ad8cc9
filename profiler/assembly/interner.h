// Interner: gives equal values the same row. For strings, shapes and views of a trace.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace stowage::profiler {

template <class Value>
class Interner {
 public:
  // The row of `value`, appended to `rows` when it is new. Always called with the same `rows`.
  std::int32_t row(std::vector<Value>& rows, const Value& value) {
    const auto [entry, is_new] = rows_.try_emplace(value, static_cast<std::int32_t>(rows.size()));
    if (is_new) rows.push_back(value);
    return entry->second;
  }

 private:
  std::map<Value, std::int32_t> rows_;
};

}  // namespace stowage::profiler
