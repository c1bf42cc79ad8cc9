// StorageHolder: tenants of one kind with a home of their own (parameters, optimizer state,
// gradients) on a running step. Owned by PlannedStep::State; private to executor/planned_*.cpp.
//
//   adopt()            once, when the plan is made: what streams leaves its own memory
//   put_away()         what materialise() brought back, all of it or not, is adopted
//   begin()            what goes on over a step's end is loaded, if it is not there from the step
//                      before
//   load() .. evict()  the schedule's instructions
//   end()              on plan: what goes on over the step's end is hidden until begin()
//   abort()            off plan or after an exception: everything leaves, dirty bytes are stored
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/device/device.h"
#include "executor/planned_step.h"
#include "executor/streamed_storages.h"
#include "executor/tenant_holder.h"
#include "simulator/schedule/schedule.h"

namespace stowage::executor {

class StorageHolder : public TenantHolder {
 public:
  // `storages`: in order of the schedule's tenants of this kind; without tensors where each step
  // has others. Their slots, in `arena`, outlive all but what was materialised.
  StorageHolder(Device& device, const simulator::Schedule& schedule,
                const simulator::TenantKind& kind, const std::vector<StateStorage>& storages,
                std::byte* arena, bool poison_buffers);

  // As StreamedStorages::check().
  [[nodiscard]] Status check() const { return streamed_.check(); }
  void adopt() { streamed_.adopt(); }
  // Throws c10::Error when somebody else holds the memory of a storage.
  void put_away();
  void begin();  // throws c10::OutOfMemoryError
  void load(StayId stay, StepReport& report) override;
  void await(StayId stay) override;
  void store(StayId stay, StepReport& report) override;
  void evict(StayId stay, StepReport& report) override;
  void leave_plan() override { materialise(); }
  // Behind the step's last instruction. Returns the bytes stored because they were dirty.
  virtual Bytes end() { return streamed_.hide(); }
  // Gives all up; returns the bytes stored because they were dirty. The device has been waited for.
  virtual Bytes abort() { return streamed_.give_up(); }
  void materialise() { streamed_.materialise(); }

  // Each as StreamedStorages::value() has it. The device has been waited for.
  [[nodiscard]] std::vector<NamedTensor> values_of(const std::vector<NamedTensor>& tensors) const;
  [[nodiscard]] const ArenaUse& arena_use() const { return streamed_.arena_use(); }

 protected:
  [[nodiscard]] StreamedStorages& streamed() { return streamed_; }
  [[nodiscard]] const StreamedStorages& streamed() const { return streamed_; }
  [[nodiscard]] std::size_t storage_of(StayId stay) const {
    return static_cast<std::size_t>(stays_[stay.index()].storage);
  }

 private:
  struct StorageStay {
    std::int32_t storage = -1;  // of streamed_; -1: the stay is of another kind
    bool wraps = false;
  };
  StreamedStorages streamed_;
  std::vector<StorageStay> stays_;  // by stay
  std::vector<Bytes> bytes_;        // by storage
};

}  // namespace stowage::executor
