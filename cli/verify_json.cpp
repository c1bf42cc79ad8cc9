#include "cli/verify_json.h"

#include "cli/json_pieces_json.h"

namespace stowage::cli {
namespace {

constexpr int kMaxDepth = 32;

class Reader {
 public:
  Reader(const Json& json, const std::string& file) : json_(json), file_(file) {}

  // Reads one value; keeps the first error.
  template <class T>
  void read(const char* pointer, std::optional<T>& target) {
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
  void require(const char* pointer, T& target) {
    std::optional<T> value;
    read(pointer, value);
    if (value)
      target = *value;
    else
      fail(pointer, "is missing");
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void fail(const char* pointer, const char* what) {
    if (!error_) error_ = Error{ErrorCode::bad_input, what, file_, pointer, ""};
  }
  const Json& json_;
  const std::string& file_;
  std::optional<Error> error_;
};

}  // namespace

Result<VerifyFacts> read_verify(const std::string& text, const std::string& file) {
  bool deep = false;
  const auto limit = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  const Json json = Json::parse(text, limit, false);
  if (deep) return Error{ErrorCode::bad_input, "nested too deeply", file, "", ""};
  if (!json.is_object()) return Error{ErrorCode::bad_input, "not a JSON object", file, "", ""};

  Reader reader(json, file);
  VerifyFacts facts;
  std::string schema;
  reader.require("/schema", schema);
  if (!reader.error() && schema != "stowage-verify/1") {
    return Error{ErrorCode::bad_input, "the schema is '" + schema + "'", file, "/schema",
                 "this reads stowage-verify/1, as stowage verify --json prints it"};
  }
  std::optional<double> difference;
  std::optional<std::int64_t> steps;
  std::optional<std::string> kind;
  reader.require("/passed", facts.passed);
  reader.require("/bitwise", facts.bitwise);
  reader.read("/max_abs_diff", difference);
  reader.read("/steps", steps);
  reader.read("/reference/kind", kind);
  reader.read("/reference/repeatable", facts.repeatable);
  reader.read("/reference/peak_requested_bytes", facts.reference_peak);
  reader.read("/reference/step_ns", facts.reference_step);
  reader.read("/planned/peak_requested_bytes", facts.measured_peak);
  reader.read("/planned/peak_active_bytes", facts.measured_active);
  reader.read("/planned/peak_reserved_bytes", facts.measured_reserved);
  reader.read("/planned/step_ns", facts.measured_step);
  reader.read("/planned/stall_ns", facts.measured_stall);
  reader.read("/planned/host_bytes", facts.measured_host);
  reader.read("/predicted/peak_requested_bytes", facts.predicted_peak);
  reader.read("/predicted/step_ns", facts.predicted_step);
  reader.read("/predicted/stall_ns", facts.predicted_stall);
  reader.read("/predicted/host_bytes", facts.predicted_host);
  if (reader.error()) return *reader.error();
  facts.max_abs_diff = difference.value_or(0);
  facts.steps = steps.value_or(0);
  facts.reference_kind = kind.value_or("");
  return facts;
}

}  // namespace stowage::cli
