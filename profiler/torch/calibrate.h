// Calibration of the machine that a step runs on: how fast transfers of each size are, alone, both
// ways at once and beside compute, and what queueing them costs the launching CPU.
#pragma once

#include <functional>

#include "executor/device/device.h"
#include "profiler/torch/measured_host_updates.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

struct CalibrationOptions {
  Bytes largest = Bytes{64} << 20;  // sizes are 4 KiB, 16 KiB, .. up to this
  // Rounds of link_rounds.h, half of them behind everything else that is measured; and samples of
  // what is measured between them.
  int repetitions = 7;
  // The step that will be planned, to see how much copies slow *it* down; asked for on a GPU only
  // (the copy threads of a CPU compete for cores in any case). Empty = a matrix product.
  std::function<void()> step{};
  // Called ahead of each of these, outside of what is timed. May be empty.
  std::function<void()> prepare{};
  // The updates of the run, to see how fast the host does them; none: that is not measured.
  HostUpdateKind updates{};
};

// Takes a second or two on a GPU, half of one on a CPU, and six steps, four where the step is long;
// on a GPU also what rest_gain.h takes, with updates what measured_host_updates.h does. Uses
// `largest` bytes of the device twice and as much of the host; call it between steps. Error
// (environment): no host memory. Exceptions of the step (out of memory among them) pass through.
[[nodiscard]] Result<Calibration> calibrate(executor::Device& device,
                                            const CalibrationOptions& options = {});

}  // namespace stowage::profiler
