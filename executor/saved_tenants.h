// SavedTenants: the saved tensors of a Schedule on a running step. A made stay holds the tensor's
// storage from its pack to its eviction; a loaded stay holds a buffer from its load to its
// eviction, and the unpacks between are handed views of it. Owned by PlannedStep::State, in its
// turns; private to executor/planned_*.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/device/arena_use.h"
#include "executor/device/device.h"
#include "executor/planned_step.h"
#include "executor/saved_view.h"
#include "executor/tenant_holder.h"
#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::executor {

class SavedTenants final : public TenantHolder {
 public:
  // All outlive it; `arena` has the schedule's size. Cost: O(tenants^2 + stays).
  SavedTenants(Device& device, const Trace& trace, const simulator::Schedule& schedule,
               std::byte* arena, const PlannedStepOptions& options);

  // Ahead of each step: nothing is held. Precondition: copies are done.
  void begin();
  // Drops what is held. Precondition: copies are done.
  void drop_all();
  // The tensor that the tenant's store copies: its storage is held until the eviction.
  void keep(TenantId tenant, const at::Tensor& tensor);
  // The bytes of a saved tensor on the device: in the buffer of the stay that serves its unpack.
  // Throws c10::Error when somebody wrote into the buffer.
  [[nodiscard]] at::Tensor view(StayId stay, const SavedView& view) const;
  // The same outside the plan, in a buffer of its own; counted in the report. Throws c10::Error
  // when the host slot was given to another tenant.
  [[nodiscard]] at::Tensor load_off_plan(TenantId tenant, const SavedView& view,
                                         StepReport& report);

  void load(StayId stay, StepReport& report) override;
  void await(StayId stay) override;
  void store(StayId stay, StepReport& report) override;
  void evict(StayId stay, StepReport& report) override;
  void leave_plan() override;

  // Of all copies since it was made.
  [[nodiscard]] const ArenaUse& arena_use() const { return arena_use_; }

 private:
  // Of a tenant: its storage and its slot.
  struct Home {
    at::Tensor source;  // detached; held from the pack to the eviction
    std::int64_t version = 0;
    CopyTicket store;
    bool slot_valid = false;  // the host slot holds this step's bytes
    std::size_t loads_left = 0;
  };
  struct Buffer {
    at::Tensor tensor;
    CopyTicket load;
  };

  [[nodiscard]] const simulator::Tenant& tenant_of(StayId stay) const {
    return schedule_.tenant(stay);
  }
  [[nodiscard]] Home& home_of(StayId stay) {
    return homes_[schedule_.stays[stay.index()].tenant.index()];
  }
  [[nodiscard]] std::byte* slot(const simulator::Tenant& tenant) const {
    return arena_ + tenant.host_offset;
  }
  // The same for a copy of all of it.
  std::byte* used(const simulator::Tenant& tenant) {
    arena_use_.copied(slot(tenant), tenant.bytes);
    return slot(tenant);
  }
  void evict_made(StayId stay);
  void find_overlaps();

  Device& device_;
  const Trace& trace_;
  const simulator::Schedule& schedule_;
  std::byte* arena_;
  ArenaUse arena_use_;
  const PlannedStepOptions& options_;
  std::vector<Home> homes_;                         // by tenant; those of other kinds stay empty
  std::vector<Buffer> buffers_;                     // by stay
  std::vector<std::size_t> loads_;                  // per tenant: how many in a step
  std::vector<std::vector<TenantId>> overlapping_;  // whose host slots share bytes with this one's
};

}  // namespace stowage::executor
