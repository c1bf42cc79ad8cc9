#include "report/answers/error_json.h"

#include "report/answers/answer_pieces_json.h"

namespace stowage::report {

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

Json error_member(const Error& error) {
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
