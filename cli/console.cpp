#include "cli/console.h"

#include "cli/error_json.h"
#include "traces/file_io.h"

namespace stowage::cli {

// File names and names in files may hold anything; what is printed of them is one line and moves
// no cursor. C1 controls are U+0080 to U+009F: C2 80 to C2 9F in UTF-8.
std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) text[i] = '?';
    const bool c1 = byte == 0xC2 && i + 1 < text.size() &&
                    (static_cast<unsigned char>(text[i + 1]) & 0xE0U) == 0x80U;
    if (c1) text.replace(i, 2, "?");
  }
  return text;
}

void Console::warn(const std::string& text) const {
  if (!quiet) err << "stowage: " << paint_err.yellow("warning:") << ' ' << printable(text) << '\n';
}

void Console::note(const std::string& text) const {
  if (!quiet) err << "stowage: " << printable(text) << '\n';
}

Status write_output(const Console& console, const std::string& path, const std::string& text) {
  if (path != "-") {
    if (Status status = console.files.may_write(path); !status) return status;
    return write_file(path, text);
  }
  console.out << text;
  return Unit{};
}

int report_error(const Console& console, const Error& error) {
  console.err << "stowage: " << console.paint_err.red("error:") << ' ' << printable(error.text())
              << '\n';
  if (console.json) console.out << error_json(error);
  return static_cast<int>(error.code);
}

Error usage_error(std::string message, std::string hint) {
  return Error{ErrorCode::usage, std::move(message), "", "", std::move(hint)};
}

Error not_supported_yet(const std::string& what) {
  return usage_error(what + " is not supported yet");
}

}  // namespace stowage::cli
