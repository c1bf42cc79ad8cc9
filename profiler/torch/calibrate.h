// Calibration of the copy lanes: how fast transfers of each size are, alone, both ways at once, and
// while compute is busy.
#pragma once

#include "executor/device/device.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

struct CalibrationOptions {
  Bytes largest = Bytes{64} << 20;  // sizes are 4 KiB, 16 KiB, .. up to this
  int repetitions = 7;              // per size; the curve holds the median
};

// Takes about a second. Uses `largest` bytes of the device twice and as much of the host; call it
// before the model is built or between steps. Error (environment): no host memory.
[[nodiscard]] Result<Calibration> calibrate(executor::Device& device,
                                            const CalibrationOptions& options = {});

}  // namespace stowage::profiler
