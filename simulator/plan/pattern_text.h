// Names as patterns (simulator/plan/pattern.h): what the writers of rules and of shards share.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace stowage::simulator {

using Numbers = std::set<std::int64_t>;

// Digits only, no leading zero, of a size that fits.
[[nodiscard]] bool is_number(const std::string& text);
// {0,1,2,5} -> "[0-2,5]"; {3} -> "3".
[[nodiscard]] std::string numbers_text(const Numbers& numbers);
// A name as a pattern. Loose: characters that a pattern would read as its own become `?`, which is
// short and matches other names as well; exact: they are escaped.
enum class Spelling { loose, exact };
[[nodiscard]] std::string as_pattern(const std::string& name, Spelling spelling);

// Of a pattern or a name that a user wrote, as much as one line of an error holds: 80 bytes, then
// "..".
[[nodiscard]] std::string short_text(std::string_view text);

// A dotted path taken apart at its first component that is a number: "layers.3.mlp" is "layers.",
// 3,
// ".mlp". Without one: number -1, all in `suffix`.
struct NumberedPath {
  std::string prefix;
  std::int64_t number = -1;
  std::string suffix;
};
[[nodiscard]] NumberedPath take_apart(const std::string& path);

}  // namespace stowage::simulator
