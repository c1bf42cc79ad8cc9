#include "simulator/placement/planned_memory.h"

#include "simulator/allocator/allocation_sequence.h"

namespace stowage::simulator {

PlannedMemory planned_memory(const StepIndex& index, const Schedule& schedule) {
  PlannedMemory memory;
  memory.live = live_ranges(allocation_sequence(index, schedule), index.trace().setup);
  memory.placement = place(memory.live);
  return memory;
}

PlannedBytes planned_bytes(const StepIndex& index, const Schedule& schedule) {
  const DevicePlacement placement = planned_memory(index, schedule).placement;
  return {placement.bytes(), placement.lower_bound};
}

}  // namespace stowage::simulator
