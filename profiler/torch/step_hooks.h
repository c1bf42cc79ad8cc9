// What the executor's hooks cost a real step: the step under a plan that moves nothing, against the
// plain one. The small step of issue_costs.h has every cache warm; a model's has not.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/device/device.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/step_budget.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

struct StepHooks {
  Nanoseconds plain_ns = 0;    // median of the plain steps
  Nanoseconds planned_ns = 0;  // median under the plan that moves nothing
  std::int64_t hooks = 0;      // packs and unpacks of one step
  // Of one pack or unpack. 0 where the plan costs nothing that can be seen: a step that waits for
  // its device anyway, or one without saved tensors.
  [[nodiscard]] Nanoseconds hook_ns() const;
};

// Runs plain and planned steps in turns, as many pairs as `pairs` says; batches are numbered on
// from `first_index`. `trace` is of this very step. Exceptions of the step (out of memory among
// them) pass through; device and driver are clean afterwards in any case. Error: the step is not
// the recorded one.
[[nodiscard]] Result<StepHooks> measure_step_hooks(executor::Device& device,
                                                   const StepFunctions& step,
                                                   std::shared_ptr<const Trace> trace,
                                                   std::int64_t first_index,
                                                   const StepBudget& pairs);

// Whether the thread that launches the step has little to do: launching all of the step's GPU work
// and calling all of its hooks takes a twentieth of the step's time at most, by the trace's
// launch_ns and hook_ns. Those are of short loops with warm caches, and an op of a model takes a
// few times as long; the thread is still far ahead of the GPU then. What hooks take from its lead
// shows in no step time, and the difference of two step times would be their noise. False without
// GPU work.
[[nodiscard]] bool launches_far_ahead(const Trace& trace);

// The larger of the trace's hook_ns (that of a short chain, issue_costs.h) and the measured one
// becomes the trace's: 7 pairs of steps, of a long step fewer: 2 at least, up to 8 s. On a GPU
// only, for a step that fits with everything kept and whose launches are not far ahead; else
// nothing runs and nothing changes.
[[nodiscard]] Status calibrate_hooks(executor::Device& device, const StepFunctions& step,
                                     std::int64_t first_index, Trace& trace);

}  // namespace stowage::profiler
