// Patterns on sites and op names: `*` any run of characters (also none), `?` one character, `[a-b]`
// a whole number with a value in the range; ranges and single numbers may be listed: `[0-3,7]`.
// "Whole" means that the neighbours in the text are no digits: `layers.[0-1]*` does not match
// `layers.12`. `[*]`, `[?]` and `[[]` are these characters themselves, as everything else is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/result.h"

namespace stowage::simulator {

class Pattern {
 public:
  // Errors (bad_input, message only): an empty pattern, an unclosed or malformed `[..]`, a range
  // whose end is below its start.
  [[nodiscard]] static Result<Pattern> parse(std::string_view text);

  // Cost: O(text * elements of the pattern), whatever the pattern.
  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  enum class Kind : std::uint8_t { literal, any_one, any_run, number };
  struct Element {
    Kind kind = Kind::literal;
    char character = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // inclusive
  };
  std::vector<Element> elements_;
};

}  // namespace stowage::simulator
