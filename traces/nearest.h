// Hints for mistyped names: "unknown policy 'torchtun' (did you mean 'torchtune'?)".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stowage {

// The candidate with the smallest edit distance to `word` (Levenshtein, case-insensitive; the
// first one of equals), or empty when none is near: the distance may be at most a third of the
// longer word, rounded up. A word of more than kLongestNearest bytes is near to none. Cost: O(sum
// of lengths * length of word), at most some tenths of a second: then it stops looking.
inline constexpr std::size_t kLongestNearest = 256;
[[nodiscard]] std::string nearest(std::string_view word,
                                  const std::vector<std::string>& candidates);

}  // namespace stowage
