// Reads what a verb printed with --json and somebody kept. Such a file may hold anything: every
// read is checked, the first trouble is kept. Included by *_json.cpp only.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "traces/result.h"

namespace stowage::report {

class AnswerReader {
 public:
  using Json = nlohmann::ordered_json;

  // Errors (bad_input, naming `file`): not JSON, not an object, larger or nested deeper than any
  // answer (kAnswerBounds).
  [[nodiscard]] static Result<AnswerReader> parse(std::string_view text, std::string file);

  [[nodiscard]] const Json& json() const { return json_; }

  // What is absent or null leaves `target` as it is.
  template <class T>
  void read(const std::string& pointer, std::optional<T>& target) {
    const Json::json_pointer at(pointer);
    if (!json_.contains(at) || json_.at(at).is_null()) return;
    const Json& value = json_.at(at);
    const bool fits = std::is_same_v<T, bool>          ? value.is_boolean()
                      : std::is_same_v<T, std::string> ? value.is_string()
                      : std::is_floating_point_v<T>    ? value.is_number()
                                                       : value.is_number_integer();
    if (!fits) return fail(pointer, "is of the wrong kind");
    target = value.get<T>();
  }
  template <class T>
  void read(const std::string& pointer, T& target) {
    std::optional<T> value;
    read(pointer, value);
    if (value) target = std::move(*value);
  }
  template <class T>
  void require(const std::string& pointer, T& target) {
    std::optional<T> value;
    read(pointer, value);
    if (!value) return fail(pointer, "is missing");
    target = std::move(*value);
  }
  // Of a list; 0 when it is absent or null.
  [[nodiscard]] std::size_t size_of(const std::string& pointer);

  // Keeps the first one only.
  void fail(const std::string& pointer, const char* what);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  AnswerReader(Json json, std::string file) : json_(std::move(json)), file_(std::move(file)) {}

  Json json_;
  std::string file_;
  std::optional<Error> error_;
};

}  // namespace stowage::report
