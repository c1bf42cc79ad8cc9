// Whether two calibrations are of one machine.
#pragma once

#include "traces/trace.h"

namespace stowage::gui {

// In all that a person can set.
[[nodiscard]] bool same_machine(const Calibration& a, const Calibration& b);

}  // namespace stowage::gui
