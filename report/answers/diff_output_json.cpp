#include "report/answers/diff_output_json.h"

#include "report/answers/answer_pieces_json.h"

namespace stowage::report {
namespace {

Json value_json(const std::optional<std::variant<std::int64_t, double, std::string>>& value) {
  if (!value) return nullptr;
  return std::visit([](const auto& each) { return Json(each); }, *value);
}

// Differences of whole numbers are whole.
Json number_json(const std::optional<double>& number, bool whole) {
  if (!number) return nullptr;
  return whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
}

}  // namespace

std::string diff_json(const Diff& diff, const std::string& before, const std::string& after) {
  Json json;
  json["schema"] = "stowage-diff/1";
  json["kind"] = diff.kind;
  json["before"] = before;
  json["after"] = after;
  json["equal"] = diff.changes.empty();
  json["unchanged"] = diff.unchanged;
  Json rows = Json::array();
  for (const Change& change : diff.changes) {
    const auto difference = change.difference();
    const auto is_whole = [](const auto& value) {
      return value && std::holds_alternative<std::int64_t>(*value);
    };
    const bool whole = is_whole(change.before) && is_whole(change.after) && difference &&
                       *difference > -9e15 && *difference < 9e15;
    rows.push_back({{"section", change.section.empty() ? Json(nullptr) : Json(change.section)},
                    {"name", change.name},
                    {"unit", name_of(change.unit)},
                    {"before", value_json(change.before)},
                    {"after", value_json(change.after)},
                    {"difference", number_json(difference, whole)},
                    {"relative", number_json(change.relative(), false)}});
  }
  json["changes"] = std::move(rows);
  return dump(json);
}

}  // namespace stowage::report
