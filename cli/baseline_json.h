// A Baseline as JSON. Writing is byte-stable: keys in a fixed order, one row of storages a line, so
// baselines diff well; docs/ci.md describes the keys.
#pragma once

#include <string>
#include <string_view>

#include "cli/baseline.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::cli {

// Ends with a newline; reading it back gives an equal Baseline.
[[nodiscard]] std::string baseline_to_json(const Baseline& baseline);

// Total: any bytes give a Baseline or an Error (bad_input, with `file` and a JSON pointer). A newer
// schema than kBaselineSchema is refused by its number.
[[nodiscard]] Result<Baseline> baseline_from_json(std::string_view text, const std::string& file);

// "sha256:.." of what the plan decides: its rules and budget. Predictions, the trace it was made
// from, by whom, and the memory that it runs in do not change it.
[[nodiscard]] std::string decisions_hash(simulator::Plan plan);

}  // namespace stowage::cli
