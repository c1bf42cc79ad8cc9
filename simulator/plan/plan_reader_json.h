// Reads the parts of a plan's JSON; plan_json.h is the way in. Only *_json files know this one.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::simulator::plan_json {

using Json = nlohmann::ordered_json;

inline constexpr const char* kSchema = "stowage-plan/1";

// A JSON pointer one level down.
[[nodiscard]] std::string child(const std::string& pointer, std::string_view key);
[[nodiscard]] std::string child(const std::string& pointer, std::size_t index);
// What the user wrote, short enough for one line of an error.
[[nodiscard]] std::string in_quotes(std::string_view text);
// An error is one line, whatever characters the file put into it.
[[nodiscard]] std::string printable(std::string text);
[[nodiscard]] bool is_percentage(std::string_view text);

// Reads one document; the first error is kept and ends the reading.
class PlanReader {
 public:
  explicit PlanReader(std::string file) : file_(std::move(file)) {}

  Result<Plan> read(std::string_view text);

 private:
  // Each returns false after an error was noted.
  bool fail(const std::string& pointer, std::string message, std::string hint = "") {
    if (!error_) {
      error_ = Error{ErrorCode::bad_input, printable(std::move(message)), file_, printable(pointer),
                     printable(std::move(hint))};
    }
    return false;
  }
  bool fail(const std::string& pointer, const Error& error) {
    return fail(pointer, error.message, error.hint);
  }
  bool object(const Json& json, const std::string& pointer);
  bool known_keys(const Json& json, const std::string& pointer,
                  std::initializer_list<const char*> keys);
  bool text(const Json& json, const std::string& pointer, std::string& out);
  bool integer(const Json& json, const std::string& pointer, std::int64_t lowest,
               std::int64_t& out);
  // One of `names`; on failure names the nearest.
  bool one_of(const Json& json, const std::string& pointer, const std::vector<std::string>& names,
              std::size_t& out);

  bool parse(std::string_view text, Json& out);
  bool schema(const Json& document);
  bool target(const Json& json, PlanTarget& out);
  bool budget(const Json& json, PlanBudget& out);
  bool placement(const Json& json, PlacementMode& out);
  bool rules(const Json& json, std::vector<SavedRule>& out);
  // A rule, and its parts: what is done, with which saved tensors, when and how they move.
  bool rule(const Json& json, const std::string& pointer, SavedRule& out);
  bool rule_action(const Json& json, const std::string& pointer, SavedRule& out);
  bool rule_selection(const Json& json, const std::string& pointer, SavedRule& out);
  bool rule_movement(const Json& json, const std::string& pointer, SavedRule& out);
  bool predicted(const Json& json, Predicted& out);
  bool made_by(const Json& json, MadeBy& out);
  bool parameters(const Json& json, ParameterPlan& out);
  bool shards(const Json& json, const std::string& pointer, ParameterPlan& out);
  bool stream(const Json& json, const std::string& pointer, ParameterPlan& out);
  bool stream_mode(const Json& json, const std::string& pointer, StreamMode& out);
  // `depth`: rules around it.
  bool recompute(const Json& json, const std::string& pointer, std::int32_t depth,
                 std::vector<RecomputeRule>& out);
  bool recompute_rule(const Json& json, const std::string& pointer, std::int32_t depth,
                      RecomputeRule& out);
  bool boundary(const Json& json, const std::string& pointer, std::int32_t depth,
                RecomputeRule& out);
  bool micro_batches(const Json& json, std::vector<MicroBatchRule>& out);
  bool optimizer(const Json& json, std::vector<OptimizerRule>& out);
  bool gradients(const Json& json, std::vector<GradientRule>& out);
  template <class Read>
  bool layer_rules(const Json& json, const std::string& pointer,
                   std::initializer_list<const char*> keys, Read&& read);
  bool place(const Json& rule, const std::string& at, const char* key,
             std::initializer_list<const char*> can, std::string& out);

  std::string file_;
  std::optional<Error> error_;
};

}  // namespace stowage::simulator::plan_json
