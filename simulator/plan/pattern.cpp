#include "simulator/plan/pattern.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "simulator/plan/pattern_text.h"

namespace stowage::simulator {
namespace {

constexpr std::size_t kMaxDigits = 18;  // always fits an int64

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<std::int64_t> number(std::string_view digits) {
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : digits) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

Error malformed(std::string_view text, const std::string& what) {
  return {ErrorCode::bad_input, "pattern \"" + short_text(text) + "\" " + what, "", "",
          "numbers are written [3], [0-5] or [0-2,7]"};
}

}  // namespace

Result<Pattern> Pattern::parse(std::string_view text) {
  if (text.empty()) {
    return Error{ErrorCode::bad_input, "the pattern is empty", "", "", "\"*\" matches everything"};
  }
  Pattern pattern;
  for (std::size_t i = 0; i < text.size(); ++i) {
    Element element;
    if (text[i] == '*') {
      element.kind = Kind::any_run;
      // A run of stars is one star.
      if (!pattern.elements_.empty() && pattern.elements_.back().kind == Kind::any_run) continue;
    } else if (text[i] == '?') {
      element.kind = Kind::any_one;
    } else if (text[i] == '[' && i + 2 < text.size() && text[i + 2] == ']' &&
               (text[i + 1] == '*' || text[i + 1] == '?' || text[i + 1] == '[')) {
      element.character = text[i + 1];
      i += 2;
    } else if (text[i] == '[') {
      const std::size_t close = text.find(']', i);
      if (close == std::string_view::npos) return malformed(text, "has a [ without ]");
      std::string_view list = text.substr(i + 1, close - i - 1);
      element.kind = Kind::number;
      for (bool more = true; more;) {
        const std::size_t comma = list.find(',');
        more = comma != std::string_view::npos;
        const std::string_view item = list.substr(0, comma);
        if (more) list.remove_prefix(comma + 1);
        const std::size_t dash = item.find('-');
        const auto first = number(item.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
        const auto has_digits_alone = [](std::string_view part) {
          return !part.empty() && std::all_of(part.begin(), part.end(), is_digit);
        };
        if (!first || !last) {
          const std::string_view wrong =
              first ? item.substr(dash + 1) : item.substr(0, std::min(dash, item.size()));
          return malformed(text, has_digits_alone(wrong)
                                     ? "has a number of more than 18 digits between [ and ]"
                                     : "has no numbers between [ and ]");
        }
        if (*last < *first) return malformed(text, "has a range that ends before it starts");
        element.ranges.emplace_back(*first, *last);
      }
      i = close;
    } else {
      element.character = text[i];
    }
    pattern.elements_.push_back(std::move(element));
  }
  return pattern;
}

bool Pattern::matches(std::string_view text) const {
  // reach[i]: the elements so far can match the first i characters.
  std::vector<char> reach(text.size() + 1, 0);
  std::vector<char> next(text.size() + 1, 0);
  reach[0] = 1;
  for (const Element& element : elements_) {
    std::fill(next.begin(), next.end(), 0);
    switch (element.kind) {
      case Kind::literal:
        for (std::size_t i = 0; i < text.size(); ++i) {
          if (reach[i] != 0 && text[i] == element.character) next[i + 1] = 1;
        }
        break;
      case Kind::any_one:
        for (std::size_t i = 0; i < text.size(); ++i) next[i + 1] = reach[i];
        break;
      case Kind::any_run: {
        char seen = 0;
        for (std::size_t i = 0; i <= text.size(); ++i) {
          seen = seen != 0 || reach[i] != 0 ? 1 : 0;
          next[i] = seen;
        }
        break;
      }
      case Kind::number:
        for (std::size_t i = 0; i < text.size(); ++i) {
          if (reach[i] == 0 || !is_digit(text[i]) || (i > 0 && is_digit(text[i - 1]))) continue;
          std::size_t end = i;
          while (end < text.size() && is_digit(text[end])) ++end;
          const auto value = number(text.substr(i, end - i));
          if (value &&
              std::any_of(element.ranges.begin(), element.ranges.end(), [&](const auto& range) {
                return range.first <= *value && *value <= range.second;
              })) {
            next[end] = 1;
          }
        }
        break;
    }
    reach.swap(next);
  }
  return reach[text.size()] != 0;
}

}  // namespace stowage::simulator
