#include "cli/option_values.h"

#include <iterator>
#include <utility>

#include "cli/console.h"
#include "planner/policy.h"
#include "simulator/machine/calibration_settings.h"

namespace stowage::cli {

Result<simulator::PlacementMode> placement_named(const std::string& name) {
  using simulator::PlacementMode;
  return value_of_name("--placement", "memory", name,
                       {PlacementMode::caching, PlacementMode::planned});
}

void offer_replay_values(CommandLine& line, std::vector<std::string> more,
                         std::vector<std::string> more_settings) {
  line.offer("--placement", {"planned", "caching"});
  for (const planner::PolicyInfo& policy : planner::policies()) more.push_back(policy.name);
  line.offer("--policy", std::move(more));
  std::vector<std::string> settings;
  for (const auto& setting : simulator::calibration_settings()) {
    settings.push_back(setting.name + "=");
  }
  settings.insert(settings.end(), std::make_move_iterator(more_settings.begin()),
                  std::make_move_iterator(more_settings.end()));
  line.offer("--set", std::move(settings));
}

Result<int> table_rows(const std::optional<std::int64_t>& top, int otherwise) {
  const std::int64_t rows = top.value_or(otherwise);
  if (rows >= 1 && rows <= 1'000'000) return static_cast<int>(rows);
  return usage_error("--top: " + std::to_string(rows) + " is not a number of rows", "1 to 1000000");
}

}  // namespace stowage::cli
