#include "report/answers/error_json.h"

#include "report/answers/answer_pieces_json.h"
#include "report/text_escape.h"

namespace stowage::report {

namespace {

constexpr std::size_t kLongestPart = 1000;  // bytes

// Of each part: the others are said whole where one is a megabyte.
Error for_a_line(const Error& error) {
  const auto part = [](const std::string& text) { return printable(abridged(text, kLongestPart)); };
  return {error.code, part(error.message), part(error.file), part(error.pointer), part(error.hint)};
}

}  // namespace

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::condition:
      return "condition";
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::bad_input:
      return "bad_input";
    case ErrorCode::environment:
      return "environment";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::interrupted:
      return "interrupted";
  }
  return "internal";
}

std::string error_line(const Error& error) {
  return for_a_line(error).text();
}

Json error_member(const Error& said) {
  const Error error = for_a_line(said);
  std::string where = error.file;
  if (!error.pointer.empty()) where += (where.empty() ? "" : ": ") + error.pointer;
  return {{"code", name_of(error.code)},
          {"exit_code", static_cast<int>(error.code)},
          {"message", error.message},
          {"where", where},
          {"hint", error.hint}};
}

std::string error_json(const Error& error) {
  Json json;
  json["schema"] = "stowage-error/1";
  json["error"] = error_member(error);
  return dump(json);
}

}  // namespace stowage::report
