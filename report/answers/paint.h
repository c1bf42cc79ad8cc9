// Colours for words in the output, or none: one object a stream.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace stowage::report {

class Paint {
 public:
  explicit Paint(bool on = false) : on_(on) {}
  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] std::string bold(std::string_view text) const { return wrap("1", text); }
  [[nodiscard]] std::string red(std::string_view text) const { return wrap("1;31", text); }
  [[nodiscard]] std::string green(std::string_view text) const { return wrap("32", text); }
  [[nodiscard]] std::string yellow(std::string_view text) const { return wrap("33", text); }

  // How many bytes at the front of `text` are a colour of this object's; 0: none.
  [[nodiscard]] std::size_t length_at(std::string_view text) const {
    if (!on_) return 0;
    for (const std::string_view code :
         {"\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[32m", "\x1b[33m"}) {
      if (text.starts_with(code)) return code.size();
    }
    return 0;
  }

 private:
  [[nodiscard]] std::string wrap(std::string_view code, std::string_view text) const {
    if (!on_) return std::string(text);
    std::string painted = "\x1b[";
    painted.append(code).append("m").append(text).append("\x1b[0m");
    return painted;
  }
  bool on_;
};

}  // namespace stowage::report
