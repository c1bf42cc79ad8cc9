#include "simulator/plan/pattern_text.h"

#include <algorithm>
#include <cstddef>

namespace stowage::simulator {
namespace {

constexpr std::size_t kLongestNumber = 18;

}  // namespace

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= kLongestNumber && (text == "0" || text[0] != '0') &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string numbers_text(const Numbers& numbers) {
  if (numbers.size() == 1) return std::to_string(*numbers.begin());
  std::string out;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const std::int64_t first = *it;
    std::int64_t last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    out += (out.empty() ? "" : ",") + std::to_string(first);
    if (last > first) out += "-" + std::to_string(last);
  }
  return "[" + out + "]";
}

std::string as_pattern(const std::string& name, Spelling spelling) {
  std::string pattern;
  for (const char c : name) {
    const bool special = c == '*' || c == '[' || c == '?';
    if (!special) {
      pattern += c;
    } else if (spelling == Spelling::loose) {
      pattern += '?';
    } else {
      pattern += {'[', c, ']'};
    }
  }
  return pattern;
}

NumberedPath take_apart(const std::string& path) {
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const std::string component = path.substr(start, dot - start);
    if (is_number(component)) {
      return {path.substr(0, start), std::stoll(component), path.substr(dot)};
    }
    start = dot + 1;
  }
  return {"", -1, path};
}

std::string short_text(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  if (text.size() <= kLongest) return std::string(text);
  const auto is_inside_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  std::size_t end = kLongest;
  while (end > 0 && is_inside_character(end)) --end;
  return std::string(text.substr(0, end)) + "..";
}

}  // namespace stowage::simulator
