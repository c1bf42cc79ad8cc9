// PlannedGradients: the part of a Schedule that moves gradients, on a running step
// (executor/storage_holder.h). Each step has other tensors: where a schedule first stores one, it
// is what the parameter's grad() is by then. Its eviction takes the memory of the storage, whoever
// holds that too.
//
// Between steps grad() is there, without memory; one of an update in backward that the host does
// (no Tenant::previous) goes at the step's end, as without a plan it goes behind its update. What
// else than this step's plan left there (an earlier step, materialise()) goes home ahead of a step,
// unless somebody else holds it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "executor/device/device.h"
#include "executor/model.h"
#include "executor/storage_holder.h"
#include "simulator/schedule/schedule.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::executor {

class PlannedGradients final : public StorageHolder {
 public:
  // `parameters` are the model's, as they were recorded. `arena` has the schedule's size. Errors
  // (bad_input): others than the trace's; a gradient that moves is away under another plan.
  [[nodiscard]] static Result<PlannedGradients> create(Device& device, const Trace& trace,
                                                       const simulator::Schedule& schedule,
                                                       const std::vector<NamedTensor>& parameters,
                                                       std::byte* arena, bool poison_buffers);

  // What is there goes home, unless somebody else holds it.
  void adopt();
  void put_away() { adopt(); }
  void begin() {}  // none is loaded there
  // Throws c10::Error where the parameter has no gradient of the recorded size.
  void store(StayId stay, StepReport& report) override;
  // What its last store() takes home, there: whose gradient it is, and the copy.
  struct AtHome {
    at::Tensor parameter;
    at::Tensor gradient;
    CopyTicket store;
  };
  [[nodiscard]] AtHome at_home(StayId stay) const;
  Bytes end() override;
  Bytes abort() override;
  void leave_plan() override { materialise(); }
  // Those that their parameters still have, as StorageHolder has it; the others are given up.
  void materialise();

 private:
  using StorageHolder::StorageHolder;

  struct Gradient {
    std::vector<NamedTensor> parameters;  // of one storage: one of them has it
    Bytes bytes = 0;
    bool ends_with_step = false;
  };

  // The gradient that is there now; null: none of that size. `parameter`: whose it is.
  [[nodiscard]] const at::Tensor* find(std::size_t index, const NamedTensor** parameter) const;
  void drop_ended();
  // Gives up what no parameter has any more.
  void drop_stale();

  std::vector<Gradient> gradients_;  // by storage of the holder
  std::vector<bool> is_made_;        // by stay
  Device* device_ = nullptr;
};

}  // namespace stowage::executor
