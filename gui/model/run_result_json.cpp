#include "gui/model/run_result_json.h"

#include <nlohmann/json.hpp>
#include <type_traits>

namespace stowage::gui {
namespace {

using Json = nlohmann::json;
constexpr int kMaxDepth = 32;

class Reader {
 public:
  Reader(const Json& json, const std::string& file) : json_(json), file_(file) {}

  // Absent and null read as nothing; keeps the first error.
  template <class T>
  void read(const std::string& pointer, std::optional<T>& target) {
    const Json::json_pointer at(pointer);
    if (!json_.contains(at) || json_.at(at).is_null()) return;
    const Json& value = json_.at(at);
    const bool fits = std::is_same_v<T, bool>          ? value.is_boolean()
                      : std::is_same_v<T, std::string> ? value.is_string()
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
  void read(const std::string& pointer, MeasuredFigures& figures) {
    read(pointer + "/peak_requested_bytes", figures.peak_requested);
    read(pointer + "/peak_active_bytes", figures.peak_active);
    read(pointer + "/peak_reserved_bytes", figures.peak_reserved);
    read(pointer + "/host_bytes", figures.host);
    read(pointer + "/step_ns", figures.step);
    read(pointer + "/stall_ns", figures.stall);
  }
  [[nodiscard]] std::size_t size_of(const std::string& pointer) {
    const Json::json_pointer at(pointer);
    if (!json_.contains(at) || json_.at(at).is_null()) return 0;
    if (!json_.at(at).is_array()) {
      fail(pointer, "is no list");
      return 0;
    }
    return json_.at(at).size();
  }
  void fail(const std::string& pointer, const char* what) {
    if (!error_) error_ = Error{ErrorCode::bad_input, what, file_, pointer, ""};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const Json& json_;
  const std::string& file_;
  std::optional<Error> error_;
};

}  // namespace

Result<RunResult> run_result_from_json(std::string_view text, const std::string& file) {
  bool deep = false;
  const auto limit = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  const Json json = Json::parse(text, limit, false);
  if (deep) return Error{ErrorCode::bad_input, "nested too deeply", file, "", ""};
  if (!json.is_object()) return Error{ErrorCode::bad_input, "not a JSON object", file, "", ""};

  Reader reader(json, file);
  RunResult run;
  run.file = file;
  reader.read("/schema", run.schema);
  if (run.schema != "stowage-execute/1" && run.schema != "stowage-verify/1") {
    return Error{ErrorCode::bad_input, "the schema is '" + run.schema + "'", file, "/schema",
                 "this reads what stowage execute --json and stowage verify --json print"};
  }
  reader.read("/measured", run.measured);
  reader.read("/predicted", run.predicted);
  reader.read("/bitwise", run.bitwise);
  reader.read("/measured/on_plan", run.on_plan);
  reader.read("/measured/first_difference", run.first_difference);
  reader.read("/files/plan", run.plan_file);
  reader.read("/files/trace", run.trace_file);
  if (json.contains("reference")) reader.read("/reference", run.reference.emplace());
  const bool has_steps = run.schema == "stowage-execute/1";
  for (std::size_t i = 0, n = has_steps ? reader.size_of("/steps") : 0; i < n; ++i) {
    reader.read("/steps/" + std::to_string(i), run.steps.emplace_back());
  }
  for (std::size_t i = 0, n = reader.size_of("/measured/warnings"); i < n; ++i) {
    reader.read("/measured/warnings/" + std::to_string(i), run.warnings.emplace_back());
  }
  if (!run.measured.peak_requested) reader.fail("/measured/peak_requested_bytes", "is missing");
  if (reader.error()) return *reader.error();
  return run;
}

}  // namespace stowage::gui
