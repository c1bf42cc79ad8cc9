#include "report/answer_reader_json.h"

#include "traces/json_bounds.h"

namespace stowage::report {
Result<AnswerReader> AnswerReader::parse(std::string_view text, std::string file) {
  if (const Status within = check_json_bounds(text, file, kAnswerBounds); !within) {
    return within.error();
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Error{ErrorCode::bad_input, "not JSON", file, "", ""};
  if (!json.is_object()) return Error{ErrorCode::bad_input, "not a JSON object", file, "", ""};
  return AnswerReader(std::move(json), std::move(file));
}

std::size_t AnswerReader::size_of(const std::string& pointer) {
  const Json::json_pointer at(pointer);
  if (!json_.contains(at) || json_.at(at).is_null()) return 0;
  if (json_.at(at).is_array()) return json_.at(at).size();
  fail(pointer, "is no list");
  return 0;
}

void AnswerReader::fail(const std::string& pointer, const char* what) {
  if (!error_) error_ = Error{ErrorCode::bad_input, what, file_, pointer, ""};
}

}  // namespace stowage::report
