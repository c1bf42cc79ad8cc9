// What a verb writes to, after the common options were read.
#pragma once

#include <ostream>
#include <string>

#include "cli/command_files.h"
#include "cli/terminal.h"
#include "report/answers/paint.h"
#include "report/answers/text_style.h"
#include "report/text_escape.h"
#include "traces/result.h"

namespace stowage::cli {

using report::Paint;
using report::printable;

struct Console {
  Console(std::ostream& to, std::ostream& errors) : out(to), err(errors) {}

  std::ostream& out;
  std::ostream& err;
  bool json = false;
  bool quiet = false;
  Paint paint;  // for out
  Paint paint_err;
  CommandFiles files;

  // One line on stderr, "stowage: warning: ..."; nothing with --quiet.
  void warn(const std::string& text) const;
  // One line on stderr; nothing with --quiet.
  void note(const std::string& text) const;
  // An answer in words, on stdout or, where that has something else, on stderr: what files put into
  // it moves no cursor (report/text_escape.h).
  void say(const std::string& text) const;
  void say_beside(const std::string& text) const;
  // Of a text on `out`, or painted for err.
  [[nodiscard]] report::TextStyle style(const Paint& with) const {
    return {with, terminal().width, terminal().unicode};
  }
  [[nodiscard]] report::TextStyle style() const { return style(paint); }
  // A progress bar may be drawn on err.
  [[nodiscard]] bool progress() const { return !quiet && terminal().err_is_terminal; }
};

// Writes a result to a file (atomically), or to `console.out` when `path` is "-". The only way in
// which a verb writes a file. Errors: usage, it is a file that the verb has read.
[[nodiscard]] Status write_output(const Console& console, const std::string& path,
                                  const std::string& text);

// "stowage: error: ..." on err and, with --json, {"error":{..}} on out. Returns the exit code.
int report_error(const Console& console, const Error& error);

// Errors of the command line itself.
[[nodiscard]] Error usage_error(std::string message, std::string hint = {});
[[nodiscard]] Error not_supported_yet(const std::string& what);

}  // namespace stowage::cli
