// Of an exception's text, which may have a stack trace behind it, what fits into one message.
#pragma once

#include <string>

namespace stowage::executor {

[[nodiscard]] inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace stowage::executor
