#include "traces/json_bounds.h"

#include <cstddef>
#include <vector>

#include "traces/size_text.h"

namespace stowage {
namespace {

// The position behind the string whose opening quote is at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

}  // namespace

Status check_json_bounds(std::string_view text, const std::string& file, const JsonBounds& bounds) {
  const auto beyond = [&](const std::string& what) {
    return Error{ErrorCode::bad_input, what, file, "", bounds.hint};
  };
  const auto beyond_at = [&](const std::string& what, std::size_t at) {
    return beyond(what + ", at byte " + std::to_string(at));
  };
  if (static_cast<std::int64_t>(text.size()) > bounds.bytes) {
    return beyond("has more than " + format_bytes(bounds.bytes, ByteUnits::binary));
  }
  std::vector<std::int64_t> keys;  // so far, of each open list or object
  std::int64_t values = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '{' || c == '[') {
      if (static_cast<int>(keys.size()) == bounds.depth) {
        return beyond_at("is nested more than " + std::to_string(bounds.depth) + " levels deep",
                         at);
      }
      keys.push_back(0);
      ++values;
    } else if ((c == '}' || c == ']') && !keys.empty()) {
      keys.pop_back();
    } else if (c == ':' || c == ',') {
      ++values;
      if (c == ':' && !keys.empty() && ++keys.back() > bounds.keys) {
        return beyond_at("has an object with more than " + std::to_string(bounds.keys) + " keys",
                         at);
      }
    }
    if (values > bounds.values) {
      return beyond_at("has more than " + std::to_string(bounds.values) + " values", at);
    }
    ++at;
  }
  return Unit{};
}

}  // namespace stowage
