#include "cli/policies_json.h"

#include "cli/json_pieces_json.h"

namespace stowage::cli {

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

}  // namespace stowage::cli
