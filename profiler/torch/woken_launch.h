// How much slower the thread that launches a step works behind a wait for the device than ahead of
// it: it has lost its caches meanwhile. A step that waits at every saved tensor, as plans with
// blocking copies do, is launched at that pace (docs/decisions/0018).
#pragma once

#include <cstdint>
#include <vector>

#include "executor/device/device.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/step_budget.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

// What the launch thread did in a step that waited for copies at each pack.
struct WaitingStep {
  std::int64_t waits = 0;
  std::vector<Nanoseconds> worked_ns;  // [i]: from the end of wait i to the begin of the next
};

// As many steps as `budget` says (one at least), behind one to warm up. Batches are numbered on
// from `first_index`. Takes 1 MiB of the device and as much host memory; where a GPU's driver does
// not pin that, copies wait for compute, and nothing is run (no step). Exceptions of the step (out
// of memory among them) pass through; no driver stays. Error (environment): no host memory.
[[nodiscard]] Result<std::vector<WaitingStep>> measure_waiting_steps(executor::Device& device,
                                                                     const StepFunctions& step,
                                                                     std::int64_t first_index,
                                                                     const StepBudget& budget);

// Calibration::woken_launch: the time that the recorded step's launches from pack to pack take with
// hooks that keep (the trace's hook_ns is theirs, ahead of calibrate_hooks()), of what they took.
// Left out are packs between which the step waits for the device by itself or runs backward. Of
// several steps the first quartile. kPpm (as fast) where one is no step like the recorded one, or
// there is nothing to compare.
[[nodiscard]] Ppm woken_launch_speed(const Trace& trace, const std::vector<WaitingStep>& steps);

// Sets the trace's woken_launch; to be called ahead of calibrate_hooks(). 13 steps, of a long step
// fewer: 2 at least, up to 4 s. On a GPU only, for a step that fits with everything kept; else
// nothing runs and nothing changes, as without host memory. Exceptions of the step pass through.
[[nodiscard]] Status calibrate_woken_launch(executor::Device& device, const StepFunctions& step,
                                            std::int64_t first_index, Trace& trace);

}  // namespace stowage::profiler
