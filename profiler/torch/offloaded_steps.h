// Training steps that do not fit the device: model state comes when an op needs it, or stays where
// all of it fits beside what ops need; saved tensors leave at once where they would take what ops
// need, the CPU waits for each copy. No plan and no recording is needed, and the results are those
// of the step with everything kept, to the bit: for a step that must be compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/device/device.h"
#include "executor/host_pool.h"
#include "executor/model.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/state_pager.h"
#include "traces/result.h"

namespace stowage::profiler {

class OffloadedSteps {
 public:
  // `memory_limit`: of the device, 0 = all that it has; half of it, 24 GB at most, is for ops.
  // Where the step's model state fits beside that, with what a step makes of the parameters' size
  // (StepFunctions::gradients_last, casts_parameters), it stays; else it is taken, is on the host
  // behind the last step, and has a quarter of the limit. What is left is for saved tensors that
  // stay. State that cannot leave (StatePager::create()) stays. The device outlives it. Errors:
  // those of StatePager::create().
  [[nodiscard]] static Result<std::unique_ptr<OffloadedSteps>> create(executor::Device& device,
                                                                      StepFunctions step,
                                                                      Bytes memory_limit);

  // Runs StepFunctions::step once; the batch is the caller's. Exceptions of the step pass through,
  // out of memory among them. Error: ops of two threads ran at once (StepRecorder::end_step()).
  [[nodiscard]] Status step();
  // The same tensors with their bytes of now, between steps: where model state was taken CPU
  // tensors over host memory, valid until the next step, else themselves. State that no step has
  // made yet is left out.
  [[nodiscard]] std::vector<executor::NamedTensor> values(
      const std::vector<executor::NamedTensor>& tensors);

 private:
  OffloadedSteps(executor::Device& device, StepFunctions step, std::unique_ptr<StatePager> pager,
                 Bytes memory_limit);

  executor::Device& device_;
  StepFunctions step_;
  executor::HostPool host_pool_;
  std::unique_ptr<StatePager> pager_;  // may be null
  Bytes limit_;
};

}  // namespace stowage::profiler
