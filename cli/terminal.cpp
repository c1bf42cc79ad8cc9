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

int width_of_terminal(int fd) {
  winsize size{};
  const bool is_known = isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::clamp<int>(size.ws_col, 20, 200) : 80;
}

Terminal detect_terminal() {
  Terminal found;
  found.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  found.err_is_terminal = isatty(STDERR_FILENO) == 1;
  found.unicode = locale_is_utf8();
  found.width = std::max(width_of_terminal(STDOUT_FILENO), 40);
  found.err_width = width_of_terminal(STDERR_FILENO);
  return found;
}

}  // namespace stowage::cli
