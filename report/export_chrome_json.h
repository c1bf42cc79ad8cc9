// Steps as a Chrome trace (Trace Event Format): opens in Perfetto and chrome://tracing.
// docs/exports.md says what is where.
#pragma once

#include <string>
#include <vector>

#include "report/step_view.h"

namespace stowage::report {

// One process a step, in order: lanes as threads, ops, kernels, copies and stalls as slices,
// counters for memory (and by class, and the budget), arrows from each copy back to the op that uses
// it first. Events are written one by one, so memory is that of the text. Cost: O(spans log ops +
// points).
[[nodiscard]] std::string export_chrome(const std::vector<const StepView*>& steps);

}  // namespace stowage::report
