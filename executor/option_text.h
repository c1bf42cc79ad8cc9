// Options that are written "key=value,key=value", as an optimizer's and a gradient scaler's are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::executor {

// Parts at commas, empty ones too; of an empty text none.
[[nodiscard]] std::vector<std::string> option_list(std::string_view text);

// What stands behind "key=", if `option` begins so.
[[nodiscard]] std::optional<std::string> value_of(const std::string& option, std::string_view key);

// A finite decimal number, all of the text.
[[nodiscard]] std::optional<double> number_of(const std::string& text);
// The shortest text, without an exponent where it needs none, that number_of() gives the same
// number of.
[[nodiscard]] std::string number_text(double number);

}  // namespace stowage::executor
