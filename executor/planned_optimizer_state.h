// PlannedOptimizerState: the part of a Schedule that moves the optimizer's state, on a running step
// (executor/storage_holder.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "executor/device/device.h"
#include "executor/planned_step.h"
#include "executor/storage_holder.h"
#include "simulator/schedule/schedule.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::executor {

using GiveState = decltype(PlannedStepOptions::optimizer_state);

class PlannedOptimizerState final : public StorageHolder {
 public:
  // `parameters` are the model's, as they were recorded; `state` as in PlannedStepOptions. `arena`
  // has the schedule's size. Errors (bad_input): state that moves is not there, or has another size
  // than recorded; StreamedStorages::check().
  [[nodiscard]] static Result<PlannedOptimizerState> create(
      Device& device, const Trace& trace, const simulator::Schedule& schedule,
      const std::vector<NamedTensor>& parameters, const GiveState& state, std::byte* arena,
      bool poison_buffers);

  // The optimizer is about to write the state of this parameter.
  void note_update(const at::Tensor& parameter);

  // All of it that the schedule has a home for, there.
  [[nodiscard]] std::vector<NamedTensor> at_home(const at::Tensor& parameter) const;

 private:
  using StorageHolder::StorageHolder;

  std::unordered_multimap<const at::TensorImpl*, std::size_t> of_parameter_;  // storages
  std::vector<std::vector<NamedTensor>> tensors_;                             // by storage
};

}  // namespace stowage::executor
