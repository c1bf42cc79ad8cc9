#include "report/diff_input_json.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "report/answer_reader_json.h"

namespace stowage::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "stowage-";

// Looks for /schema (a text) or /schema/name, and stops there. Returning false ends the parse.
class SchemaFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  [[nodiscard]] const std::string& schema() const { return schema_; }
  [[nodiscard]] bool is_json() const { return is_json_; }
  [[nodiscard]] bool is_object() const { return is_object_; }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool string(string_t& text) override {
    const bool plain = depth_ == 1 && key_ == "schema";
    const bool named = depth_ == 2 && inside_schema_ && key_ == "name";
    if (!plain && !named) return value();
    schema_ = text;
    return false;
  }
  bool key(string_t& text) override {
    key_ = text;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object_ = true;
    if (depth_ == 1) inside_schema_ = key_ == "schema";
    ++depth_;
    key_.clear();
    return is_object_;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override {
    ++depth_;
    key_.clear();
    return is_object_;  // an array outermost: nothing to look for
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    is_json_ = false;
    return false;
  }

 private:
  bool value() const { return is_object_; }
  bool close() {
    --depth_;
    if (depth_ == 1) inside_schema_ = false;
    return true;
  }

  std::string schema_;
  std::string key_;
  int depth_ = 0;
  bool is_object_ = false;
  bool inside_schema_ = false;
  bool is_json_ = true;
};

FactUnit unit_of(const std::string& name) {
  if (name.ends_with("_bytes") || name == "bytes") return FactUnit::bytes;
  return name.ends_with("_ns") ? FactUnit::nanoseconds : FactUnit::number;
}

// Of an answer's list of layers that are computed again: "layers.3 by ops"; empty: of another list.
std::string name_of_row(const Json& row) {
  const auto is_text = [&](const char* key) {
    return row.is_object() && row.contains(key) && row.at(key).is_string();
  };
  if (!is_text("layer") || !is_text("by")) return "";
  return row.at("layer").get<std::string>() + " by " + row.at("by").get<std::string>();
}

void flatten(const Json& json, const std::string& name, int depth, std::vector<Fact>& facts);

// Rows with a name become facts of their own.
void add_rows(const Json& rows, const std::string& path, int depth, std::vector<Fact>& facts) {
  for (const Json& row : rows) {
    const std::string name = name_of_row(row);
    if (name.empty()) continue;
    Json figures = row;
    figures.erase("layer");
    figures.erase("by");
    const std::size_t first = facts.size();
    flatten(figures, path + "." + name, depth + 1, facts);
    for (std::size_t i = first; i < facts.size(); ++i) facts[i].section = path;
  }
}

void flatten(const Json& json, const std::string& name, int depth, std::vector<Fact>& facts) {
  for (const auto& [key, value] : json.items()) {
    if (depth == 0 && key == "schema") continue;
    std::string path = name.empty() ? key : name + "." + key;
    Fact fact{name, path, unit_of(key), std::int64_t{0}};
    // A name in an object of bytes or of times: {"transfer_bytes": {"d2h": ..}}.
    if (fact.unit == FactUnit::number) fact.unit = unit_of(name);
    if (value.is_object()) {
      flatten(value, path, depth + 1, facts);
      continue;
    }
    if (value.is_null()) continue;
    if (value.is_array()) {
      fact.name += ".length";
      fact.unit = FactUnit::number;
      fact.value = static_cast<std::int64_t>(value.size());
      add_rows(value, path, depth, facts);
    } else if (value.is_string()) {
      fact.unit = FactUnit::text;
      fact.value = value.get<std::string>();
    } else if (value.is_boolean()) {
      fact.unit = FactUnit::text;
      fact.value = std::string(value.get<bool>() ? "true" : "false");
    } else if (value.is_number_integer() && !value.is_number_unsigned()) {
      fact.value = value.get<std::int64_t>();
    } else if (value.is_number_unsigned() && value.get<std::uint64_t>() <= INT64_MAX) {
      fact.value = static_cast<std::int64_t>(value.get<std::uint64_t>());
    } else {
      fact.value = value.get<double>();
    }
    facts.push_back(std::move(fact));
  }
}

}  // namespace

Result<std::string> kind_of_json(const std::string& text, const std::string& file) {
  SchemaFinder finder;
  nlohmann::json::sax_parse(text, &finder);
  const auto fail = [&file](std::string what) {
    return Error{ErrorCode::bad_input, std::move(what), file, "",
                 "diff takes two traces, two plans, or two answers of a verb with --json"};
  };
  const std::string_view schema = finder.schema();
  if (schema == "stowage-trace") return std::string("trace");
  if (schema.starts_with(kPrefix)) {
    const std::string_view rest = schema.substr(kPrefix.size());
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos && slash > 0) return std::string(rest.substr(0, slash));
  }
  if (!finder.is_json()) return fail("not JSON");
  if (!finder.is_object()) return fail("not a JSON object");
  return fail("has no schema of Stowage");
}

Result<std::vector<Fact>> facts_of_result(const std::string& text, const std::string& file) {
  const Result<AnswerReader> parsed = AnswerReader::parse(text, file);
  if (!parsed) return parsed.error();
  std::vector<Fact> facts;
  flatten(parsed->json(), "", 0, facts);
  return facts;
}

}  // namespace stowage::report
