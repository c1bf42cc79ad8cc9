#include "cli/error_json.h"

#include <nlohmann/json.hpp>

namespace stowage::cli {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::condition: return "condition";
    case ErrorCode::usage: return "usage";
    case ErrorCode::bad_input: return "bad_input";
    case ErrorCode::environment: return "environment";
    case ErrorCode::internal: return "internal";
    case ErrorCode::interrupted: return "interrupted";
  }
  return "internal";
}

std::string error_json(const Error& error) {
  std::string where = error.file;
  if (!error.pointer.empty()) where += (where.empty() ? "" : ": ") + error.pointer;
  nlohmann::ordered_json json;
  json["schema"] = "stowage-error/1";
  json["error"] = {{"code", name_of(error.code)},
                   {"exit_code", static_cast<int>(error.code)},
                   {"message", error.message},
                   {"where", where},
                   {"hint", error.hint}};
  // Paths and names from files need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace stowage::cli
