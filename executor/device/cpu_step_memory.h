// StepMemory of the CPU device: a region of the tracked allocator's.
#pragma once

#include <memory>

#include "executor/device/planned_region.h"
#include "executor/device/step_memory.h"
#include "executor/device/tracked_allocator.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::executor {

class CpuStepMemory final : public StepMemory {
 public:
  // Of the period of that schedule. The allocator outlives it. Errors: PagedMemory::create().
  // Cost: that of memory_layout() and of the mappings.
  [[nodiscard]] static Result<std::unique_ptr<CpuStepMemory>> create(
      TrackedAllocator& allocator, const simulator::StepIndex& index,
      const simulator::Schedule& schedule);
  ~CpuStepMemory() override;
  CpuStepMemory(const CpuStepMemory&) = delete;
  CpuStepMemory& operator=(const CpuStepMemory&) = delete;

  void begin_period() override;
  void reach(EventId event) override;
  void end_period() override;
  [[nodiscard]] simulator::HandOutReport report() const override;
  [[nodiscard]] Bytes bytes() const override { return region_->bytes(); }

 private:
  CpuStepMemory(TrackedAllocator& allocator, simulator::MemoryLayout layout, PagedMemory memory);

  TrackedAllocator& allocator_;
  std::shared_ptr<PlannedRegion> region_;
};

}  // namespace stowage::executor
