// What the executor's hooks cost a real step: the step under a plan that moves nothing, against the
// plain one. The small step of issue_costs.h has every cache warm; a model's has not.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/device/device.h"
#include "profiler/torch/passes.h"
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

// Runs `steps` plain and `steps` planned steps in turns, batches numbered on from `first_index`.
// `trace` is of this very step. Exceptions of the step (out of memory among them) pass through;
// device and driver are clean afterwards in any case. Error: the step is not the recorded one.
[[nodiscard]] Result<StepHooks> measure_step_hooks(executor::Device& device,
                                                   const StepFunctions& step,
                                                   std::shared_ptr<const Trace> trace,
                                                   std::int64_t first_index,
                                                   std::int64_t steps = 7);

// The larger of the trace's hook_ns and the measured one becomes the trace's. On a GPU only, and
// only for a step that fits with everything kept; else nothing runs and nothing changes.
[[nodiscard]] Status calibrate_hooks(executor::Device& device, const StepFunctions& step,
                                     std::int64_t first_index, Trace& trace);

}  // namespace stowage::profiler
