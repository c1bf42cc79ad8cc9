#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

namespace stowage::cli {
namespace {

Terminal& state() {
  static Terminal value;
  return value;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string lower = value;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

const Terminal& terminal() {
  return state();
}
void set_terminal(const Terminal& value) {
  state() = value;
}

Terminal detect_terminal() {
  Terminal found;
  found.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  found.err_is_terminal = isatty(STDERR_FILENO) == 1;
  found.unicode = locale_is_utf8();
  winsize size{};
  if (found.out_is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    found.width = std::clamp<int>(size.ws_col, 40, 200);
  }
  return found;
}

}  // namespace stowage::cli
