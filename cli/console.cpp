#include "cli/console.h"

#include "report/answers/error_json.h"
#include "traces/file_io.h"

namespace stowage::cli {
namespace {

constexpr std::size_t kLongestRemark = 2000;  // bytes

std::string as_line(const std::string& text) {
  return printable(report::abridged(text, kLongestRemark));
}

}  // namespace

void Console::warn(const std::string& text) const {
  if (!quiet) err << "stowage: " << paint_err.yellow("warning:") << ' ' << as_line(text) << '\n';
}

void Console::note(const std::string& text) const {
  if (!quiet) err << "stowage: " << as_line(text) << '\n';
}

Status write_output(const Console& console, const std::string& path, const std::string& text) {
  if (path != "-") {
    if (Status status = console.files.may_write(path); !status) return status;
    return write_file(path, text);
  }
  console.out << text;
  return Unit{};
}

void Console::say(const std::string& text) const {
  out << report::printable_lines(text, paint);
}

void Console::say_beside(const std::string& text) const {
  err << report::printable_lines(text, paint_err);
}

int report_error(const Console& console, const Error& error) {
  console.err << "stowage: " << console.paint_err.red("error:") << ' ' << report::error_line(error)
              << '\n';
  if (console.json) console.out << report::error_json(error);
  return static_cast<int>(error.code);
}

Error usage_error(std::string message, std::string hint) {
  return Error{ErrorCode::usage, std::move(message), "", "", std::move(hint)};
}

Error not_supported_yet(const std::string& what) {
  return usage_error(what + " is not supported yet");
}

}  // namespace stowage::cli
