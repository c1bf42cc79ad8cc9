// TenantHolder: what one kind of tenant (simulator/schedule/tenant_kind.h) does on the real machine
// at each action of a schedule. PlannedStep::State follows the step and hands every instruction to
// the holder of its tenant; it knows no kind itself.
#pragma once

#include "simulator/schedule/schedule.h"
#include "traces/ids.h"

namespace stowage::executor {

struct StepReport;

class TenantHolder {
 public:
  virtual ~TenantHolder() = default;

  // Each under the contract of simulator::Action, on the step's compute stream; counts the bytes
  // that it moves in the report. They throw c10::Error (a device failed, something was written that
  // must not be).
  virtual void load(StayId stay, StepReport& report) = 0;
  virtual void await(StayId stay) = 0;
  virtual void store(StayId stay, StepReport& report) = 0;
  virtual void evict(StayId stay, StepReport& report) = 0;
  // The step leaves its plan: compute waits for what is under way; whatever the step still needs is
  // on the device, or comes on demand, from now on.
  virtual void leave_plan() = 0;
};

}  // namespace stowage::executor
