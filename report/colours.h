// The colours of the step's picture, one set for the window's light theme and for SVG: Okabe and
// Ito's, told apart with every common colour blindness, and greys.
#pragma once

#include "report/timeline.h"
#include "report/work_family.h"
#include "traces/trace.h"

namespace stowage::report {

// "#0072b2"
[[nodiscard]] const char* colour_of(Lane lane);
[[nodiscard]] const char* colour_of(StorageClass storage_class);
[[nodiscard]] const char* colour_of(WorkFamily family);
inline constexpr const char* kBudgetColour = "#b71c1c";

}  // namespace stowage::report
