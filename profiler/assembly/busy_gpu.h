// Whether a step keeps the GPU busy, and what follows for the calibration.
#pragma once

#include "traces/trace.h"

namespace stowage::profiler {

// A step with gaps between its kernels is not at the power limit, and what was measured with rests
// then is that they hide the gaps. So with kernels, copies and memsets for less than 97 % of the
// clean step, Calibration::least_compute and rest_gain become those of a GPU that gains nothing.
void drop_rest_gain_unless_busy(Trace& trace);

}  // namespace stowage::profiler
