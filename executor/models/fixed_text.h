// The text that language models learn with data=text: plain English, the same in every build. A
// change of it is another data set: losses of earlier recordings are then not those of later ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace stowage::executor {

// Its bytes are tokens, each below this.
inline constexpr std::int64_t kTextTokens = 128;

// A few kilobytes of ASCII.
[[nodiscard]] std::string_view fixed_text();

}  // namespace stowage::executor
