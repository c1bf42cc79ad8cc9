#include "executor/option_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>

namespace stowage::executor {

std::vector<std::string> option_list(std::string_view text) {
  std::vector<std::string> options;
  if (text.empty()) return options;
  while (true) {
    const std::size_t comma = text.find(',');
    options.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return options;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::string> value_of(const std::string& option, std::string_view key) {
  const bool begins =
      option.size() > key.size() && option.starts_with(key) && option[key.size()] == '=';
  return begins ? std::optional(option.substr(key.size() + 1)) : std::nullopt;
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  const double size = std::abs(number);
  const auto form = size == 0 || (size >= 1e-6 && size < 1e15) ? std::chars_format::fixed
                                                               : std::chars_format::scientific;
  const auto [end, code] = std::to_chars(text.data(), text.data() + text.size(), number, form);
  return code == std::errc() ? std::string(text.data(), end) : std::string();
}

}  // namespace stowage::executor
