// Event times of a trace: the observed steps are slower than the clean one, so the median gap
// between two events is scaled to the clean step.
#pragma once

#include <vector>

#include "profiler/assembly/raw_pass.h"

namespace stowage::profiler {

// One time per event of the structure pass: starts at 0, ends at clean_step_ns, never decreases.
// clean_step_ns 0 = keep the observed scale. `more_times` rows of another length are ignored.
[[nodiscard]] std::vector<Nanoseconds> event_times(
    const RawPass& structure, const std::vector<std::vector<std::int64_t>>& more_times,
    Nanoseconds clean_step_ns);

}  // namespace stowage::profiler
