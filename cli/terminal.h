// What the verbs may assume about where their text goes. main() looks once and sets it; a program
// that calls the verb functions itself (tests, embedding) gets a plain 80-column file.
#pragma once

namespace stowage::cli {

struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int width = 80;        // columns; 80 when stdout is no terminal
  int err_width = 80;    // of stderr likewise
  bool unicode = false;  // block characters may be printed (the locale is UTF-8)
};

// The process-wide description; set before the first verb, not thread-safe.
[[nodiscard]] const Terminal& terminal();
void set_terminal(const Terminal& value);

// Columns of the terminal that a descriptor leads to, 20 to 200; 80 when it is none.
[[nodiscard]] int width_of_terminal(int fd);

// Asks the system about file descriptors 1 and 2 and the locale variables (LC_ALL, LC_CTYPE, LANG,
// in this order; the first one that is not empty decides).
[[nodiscard]] Terminal detect_terminal();

}  // namespace stowage::cli
