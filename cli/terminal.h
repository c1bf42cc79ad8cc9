// What the verbs may assume about where their text goes. main() looks once and sets it; a program
// that calls the verb functions itself (tests, embedding) gets a plain 80-column file.
#pragma once

namespace stowage::cli {

struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int width = 80;        // columns; 80 when stdout is no terminal
  bool unicode = false;  // block characters may be printed (the locale is UTF-8)
};

// The process-wide description; set before the first verb, not thread-safe.
[[nodiscard]] const Terminal& terminal();
void set_terminal(const Terminal& value);

// Asks the system about file descriptors 1 and 2 and the locale variables (LC_ALL, LC_CTYPE, LANG,
// in this order; the first one that is not empty decides).
[[nodiscard]] Terminal detect_terminal();

}  // namespace stowage::cli
