// How much slower the thread that launches a step works behind a wait for the device than ahead of
// it: it has lost its caches meanwhile. A step that waits at every saved tensor, as plans with
// blocking copies do, is launched at that pace (docs/decisions/0018).
#pragma once

#include <cstdint>

#include "executor/device/device.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/step_budget.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

// What the launch thread did in a step that waited for a copy at each pack.
struct WaitingStep {
  Nanoseconds worked_ns = 0;  // between the first and the last wait, without waiting
  std::int64_t waits = 0;
};

// The first quartile, by worked_ns, of as many steps as `budget` says, behind one to warm up.
// Batches are numbered on from `first_index`. Takes 8 MiB of the device and as much pinned host
// memory. Exceptions of the step (out of memory among them) pass through; no driver stays. Error
// (environment): no host memory.
[[nodiscard]] Result<WaitingStep> measure_waiting_step(executor::Device& device,
                                                       const StepFunctions& step,
                                                       std::int64_t first_index,
                                                       const StepBudget& budget);

// Calibration::woken_launch: the time that the recorded step's launches between its first and last
// pack take with hooks and a copy at each pack, of what they took. kPpm (as fast) where `waiting`
// is no step like the recorded one, or there is nothing to compare.
[[nodiscard]] Ppm woken_launch_speed(const Trace& trace, const WaitingStep& waiting);

// Sets the trace's woken_launch: 13 steps, of a long step fewer: 2 at least, up to 4 s. On a GPU
// only, for a step that fits with everything kept, and where there is memory for it; else nothing
// changes.
[[nodiscard]] Status calibrate_woken_launch(executor::Device& device, const StepFunctions& step,
                                            std::int64_t first_index, Trace& trace);

}  // namespace stowage::profiler
