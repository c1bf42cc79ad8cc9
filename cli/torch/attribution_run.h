// One attribution step, on one device in this process, or on several, each in a process of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/torch/measured_run.h"
#include "cli/torch/plan_inputs.h"
#include "cli/torch/run_request.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::cli {

struct AttributionRun {
  std::vector<MeasuredRun> runs;  // one a device
  std::string file;               // of the attributions (attribution_results_json.h)
};

struct AttributionOptions {
  const PlanInputs* plan = nullptr;  // null: nothing moves
  std::optional<Bytes> memory_limit{};
};

// Part number `part` of the batch, which is drawn from the seed and that number. Errors: what the
// step throws; the plan's.
[[nodiscard]] Result<AttributionRun> attribute_part(const RunRequest& request,
                                                    const AttributionOptions& options,
                                                    std::int64_t part);

// Parts 0, 1, .. at once, one a device; `arguments` are those of attribute-part that say what to
// run. The file has them one behind the other. Errors: the first part's that has one.
[[nodiscard]] Result<AttributionRun> attribute_on_devices(
    std::int64_t devices, const std::vector<std::string>& arguments);

}  // namespace stowage::cli
