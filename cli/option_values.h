// Values of options that several verbs take alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "simulator/plan/plan.h"
#include "traces/named_value.h"
#include "traces/result.h"

namespace stowage::cli {

// --placement: caching or planned. Errors (usage): unknown_name().
[[nodiscard]] Result<simulator::PlacementMode> placement_named(const std::string& name);

// What shells offer for options that several verbs take: --placement, --policy and --set.
// `more` comes ahead of the policies, `more_settings` behind the names of --set.
void offer_replay_values(CommandLine& line, std::vector<std::string> more = {},
                         std::vector<std::string> more_settings = {});

// --top: rows of each table. Errors (usage): not in 1 ... 1,000,000.
[[nodiscard]] Result<int> table_rows(const std::optional<std::int64_t>& top, int otherwise);

}  // namespace stowage::cli
