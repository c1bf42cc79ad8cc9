// One step with a recorder around it; what the passes are made of.
#pragma once

#include <cstdint>

#include "profiler/torch/passes.h"

namespace stowage::profiler {

// Puts batch `index` into the inputs and runs the step recorded. When it throws, recorder and
// device are clean again.
[[nodiscard]] Result<RawPass> observe(executor::Device& device, const StepFunctions& step,
                                      RecordMode mode, std::int64_t index,
                                      const RecordOptions& options = {});

// Runs the steps ahead of any recording, batches from 0 on. The device's setup ends with the first.
// Where everything is offloaded, into the pool of `recording`; what that says runs again does.
[[nodiscard]] Status warm_up(executor::Device& device, const StepFunctions& step,
                             const PassOptions& options, const RecordOptions& recording);

}  // namespace stowage::profiler
