#include "report/answers/policies_json.h"

#include "report/answers/answer_pieces_json.h"

namespace stowage::report {

std::string policies_json(const std::vector<planner::PolicyInfo>& policies) {
  Json rows = Json::array();
  for (const planner::PolicyInfo& policy : policies) {
    Json options = Json::array();
    for (const planner::PolicyOption& option : policy.options) {
      options.push_back(
          {{"name", option.name}, {"default", option.default_value}, {"help", option.help}});
    }
    rows.push_back({{"name", policy.name}, {"summary", policy.summary}, {"options", options}});
  }
  return dump({{"schema", "stowage-policies/1"}, {"policies", std::move(rows)}});
}

}  // namespace stowage::report
